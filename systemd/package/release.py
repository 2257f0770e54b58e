"""Makes a release of the present commit: `make release VERSION=0.2.0`.

Checks that the commit is ready, builds wheel, Debian package and container image, puts them into dist/VERSION with their
checksums and the notes from CHANGELOG.md, then tags the commit. Nothing is published.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from version import DEVELOPMENT, ROOT, declared, git, next_release

TARGETS = ("wheel", "deb", "image")
MAKE = os.environ.get("MAKE", "make")


class NotReady(Exception):
    """The release cannot be made; the message has a line for each reason."""


def main() -> int:
    version = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        made = release(ROOT, version)
    except NotReady as reason:
        print(f"make release: {reason}", file=sys.stderr)
        return 1
    print(f"hippod {version} is tagged v{version}. dist/{version} has:")
    for path in made:
        print(f"  {path.name}: {path.stat().st_size / 1e6:.1f} MB")
    print(f"Now push the tag, and set version in pyproject.toml to {next_release(version)}{DEVELOPMENT}.")
    return 0


def release(root: Path, version: str) -> list[Path]:
    """Returns the files of the release, in dist/VERSION, where later builds leave them alone."""
    if problems := list(unfinished(root, version)):
        raise NotReady("\n  ".join([f"{version or 'a release'} is not ready:", *problems]))
    dist = root / "dist"
    before = {path: path.stat().st_mtime_ns for path in dist.glob("*")}
    for target in TARGETS:
        if subprocess.run([MAKE, target], cwd=root, check=False).returncode:
            raise NotReady(f"`make {target}` failed; nothing is tagged")
    made = sorted(path for path in dist.glob("*") if path.is_file() and before.get(path) != path.stat().st_mtime_ns)
    if foreign := [path.name for path in made if version not in path.name]:
        raise NotReady(f"the build made files of another version: {', '.join(foreign)}; nothing is tagged")
    if len(made) != len(TARGETS):
        raise NotReady(f"the build made {len(made)} files instead of {len(TARGETS)}; nothing is tagged")
    folder = dist / version
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    files = [folder / path.name for path in made]
    for path, link in zip(made, files, strict=True):
        link.hardlink_to(path)
    files.append(folder / f"hippod-{version}-notes.md")
    files[-1].write_text(sections(root)[version] + "\n", "utf-8")
    sums = folder / f"hippod-{version}-SHA256SUMS"
    sums.write_text("".join(f"{sha256(path)}  {path.name}\n" for path in files), "utf-8")
    if subprocess.run(
        ["git", "tag", "--annotate", f"v{version}", "--message", f"hippod {version}"], cwd=root
    ).returncode:
        raise NotReady("git could not tag the commit")
    return [*files, sums]


def unfinished(root: Path, version: str) -> Iterator[str]:
    """What is to be done before the release, one sentence each."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"{version!r} is no version: make release VERSION=1.2.3"
        return
    if git(root, "rev-parse", "HEAD") is None:
        yield "this is no git repository: a release is a commit"
        return
    if changed := git(root, "status", "--porcelain"):
        yield f"commit or remove {len(changed.splitlines())} changed files (git status)"
    if (branch := git(root, "branch", "--show-current")) != "main":
        yield f"the branch is {branch or 'none'}: releases are made of main"
    if git(root, "rev-parse", "--verify", f"refs/tags/v{version}") is not None:
        yield f"the tag v{version} exists already"
    if (found := declared(root)) != version:
        yield f'pyproject.toml says version = "{found}": set and commit version = "{version}"'
    texts = sections(root)
    if not texts.get(version):
        yield f"CHANGELOG.md has no section `## {version}` with a text"
    if texts.get("Unreleased"):
        yield f"CHANGELOG.md still has a text under `## Unreleased`: move it to `## {version}`"


def sections(root: Path) -> dict[str, str]:
    """The texts of CHANGELOG.md by the headings of its second level."""
    parts = re.split(r"(?m)^## (.+)$", (root / "CHANGELOG.md").read_text("utf-8"))
    return {heading.strip(): text.strip() for heading, text in zip(parts[1::2], parts[2::2], strict=True)}


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
