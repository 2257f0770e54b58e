"""Detects other projects in hippod's Python environment that contain a package with a name of hippod's packages, such as
`daemon`.

pip does not detect this conflict: installing one project overwrites files of the other project, and removing it deletes them.
"""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from daemon.observe.redaction import ROOMS

HINT = (
    "install hippod into an environment of its own: `pipx install` or `uv tool install` of its wheel, or `make install`"
)


def packages_of_others(site_packages: Path | None = None) -> list[str]:
    """Returns the other installed projects that contain one of hippod's packages, with the package's name: `python-daemon
    (daemon)`."""
    if site_packages is None:
        try:
            site_packages = Path(str(distribution("hippod").locate_file("")))
        except PackageNotFoundError:
            return []
    found = []
    for record in sorted(site_packages.glob("*.dist-info/RECORD")):
        name = record.parent.name.partition("-")[0]
        if name != "hippod":
            content = b"\n" + record.read_bytes()
            found += [f"{name} ({each})" for each in ROOMS if b"\n%s/__init__.py," % each.encode() in content]
    return found
