"""The version of what is built: `python systemd/package/version.py [--debian | --image]`.

pyproject.toml has it: `0.2.0` in the commit of a release, `0.2.0.dev0` before that. A build between releases is told apart by
the number of commits and the last commit: `0.2.0.dev1130+g1a2b3c4`, or `0.2.0~dev1130+g1a2b3c4` for Debian. Each version is
larger than those of earlier commits and smaller than the release.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEVELOPMENT = ".dev0"


class NoVersion(Exception):
    """What is built here has no version of its own; the message says what to do."""


def declared(root: Path = ROOT) -> str:
    """The version in pyproject.toml."""
    return str(tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def build_version(root: Path = ROOT) -> str:
    """The version of a build of the work tree at `root`, as Python packages write it (PEP 440)."""
    version = declared(root)
    head = git(root, "rev-parse", "--short=7", "HEAD")
    if head is None:  # an unpacked archive of the sources
        return version
    if version.endswith(DEVELOPMENT):
        changed = ".changed" if git(root, "status", "--porcelain", "--untracked-files=no") else ""
        count = git(root, "rev-list", "--count", "HEAD")
        return f"{version.removesuffix(DEVELOPMENT)}.dev{count}+g{head}{changed}"
    released = git(root, "rev-parse", "--short=7", f"v{version}^{{commit}}")
    if released not in (None, head):
        raise NoVersion(
            f"{version} is released (commit {released}), and this is another commit: set version in pyproject.toml to the next "
            f'release with {DEVELOPMENT}, such as "{next_release(version)}{DEVELOPMENT}"'
        )
    return version


def next_release(version: str) -> str:
    major, minor, _ = version.split(".")
    return f"{major}.{int(minor) + 1}.0"


def for_debian(version: str) -> str:
    """`~` comes before nothing at all, so that dpkg takes the release for newer."""
    return version.replace(".dev", "~dev")


def for_image(version: str) -> str:
    """A tag of an image has no `+`."""
    return version.replace("+", "-")


def set_version(pyproject: Path, version: str) -> None:
    """For a copy of the sources: what is installed from it has this version."""
    text, count = re.subn(r'(?m)^version = ".*"$', f'version = "{version}"', pyproject.read_text("utf-8"), count=1)
    assert count == 1, f"{pyproject} has no version"
    pyproject.write_text(text, "utf-8")


def git(root: Path, *arguments: str) -> str | None:
    """What git prints; None where it fails, or is not installed."""
    try:
        # safe.directory: `sudo make image` reads a repository of another user.
        done = subprocess.run(["git", "-c", "safe.directory=*", "-C", root, *arguments], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def main() -> int:
    written = {"--debian": for_debian, "--image": for_image}
    try:
        version = build_version()
    except NoVersion as reason:
        print(f"hippod: {reason}", file=sys.stderr)
        return 1
    print(written[sys.argv[1]](version) if sys.argv[1:] else version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
