"""Builds hippod's wheel with the version of this commit: `python systemd/package/build_wheel.py OUT` (`make wheel`)."""

import sys
import tempfile
from pathlib import Path

import deb
from version import NoVersion, build_version


def main() -> int:
    out = Path(sys.argv[1]).absolute()
    try:
        version = build_version()
        with tempfile.TemporaryDirectory() as folder:
            deb.copy_sources(Path(folder), version)
            options = ["--disable-pip-version-check", "--quiet", "--no-deps", "--wheel-dir", out]
            deb.run([sys.executable, "-m", "pip", "wheel", *options, folder])
        made = deb.only_build(out / f"hippod-{version}-py3-none-any.whl", "hippod-*.whl")
    except (deb.Cannot, NoVersion) as reason:
        print(f"make wheel: {reason}", file=sys.stderr)
        return 1
    print(f"{made}: {made.stat().st_size / 1e6:.0f} MB. Install it with: pipx install {made}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
