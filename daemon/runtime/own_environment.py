"""hippod needs a Python environment of its own: its packages have plain names, and another package may have one of them too.

pip does not see such a conflict. It lets the later installation overwrite files of the earlier one, and a removal deletes them.
"""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

PACKAGES = ("consumers", "memory", "store", "daemon", "cli")
HINT = (
    "install hippod into an environment of its own: `pipx install` or `uv tool install` of its wheel, or `make install`"
)


def packages_of_others(site_packages: Path | None = None) -> list[str]:
    """Names of other installed projects that have one of hippod's packages, with that package: `python-daemon (daemon)`."""
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
            found += [f"{name} ({each})" for each in PACKAGES if b"\n%s/__init__.py," % each.encode() in content]
    return found
