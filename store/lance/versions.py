"""Drops versions of tables that belong to no commit; this happens before Lance opens the tables.

Lance always opens the newest version. After a crash, the newest version may belong to an unfinished change, and a power loss
may have left its files incomplete.
"""

from collections.abc import Callable
from pathlib import Path

from store.errors import RESTORE, StoreDamaged
from store.lance.layout import (
    HIGHEST_VERSION,
    VERSION_HINT,
    incomplete_newest,
    is_known_name,
    is_whole,
    manifests,
    table_folder,
    version_of,
)

FOLDER = "torn"
"""Name of the folder in the store's folder for dropped manifests."""


def drop_newer(store: Path, table: str, version: int) -> list[str]:
    """Moves the manifests of versions above `version` to `torn/`; returns their names relative to the store.

    Raises StoreDamaged if the table does not have `version`.
    """
    found = [path for path in manifests(table_folder(store, table)) if is_known_name(path)]
    newer = [path for path in found if version_of(path) > version]
    present = found[len(newer) : len(newer) + 1]
    if not present or version_of(present[0]) != version or not is_whole(present[0]):
        last = f"version {version_of(present[0])}" if present else "no version"
        raise StoreDamaged(
            f"the store {store} lacks data of its last commit in: {table} ({last} of {version}); {RESTORE}"
        )
    for path in newer:
        set_aside(store, table, path)
    return [str(path.relative_to(store)) for path in newer]


def newest_readable(store: Path, table: str, read: Callable[[], object]) -> int:
    """Returns the newest version of a table that `read` can read. Drops incomplete newer versions first.

    Needed for the table `commits` of a store without a mark, because no other file names its valid version.
    """
    found = manifests(table_folder(store, table))
    for path in incomplete_newest(found):
        set_aside(store, table, path)
        found.remove(path)
    try:
        read()
    except (OSError, RuntimeError, ValueError):
        if len(found) < 2:
            raise
        set_aside(store, table, found.pop(0))
        read()
    return version_of(found[0]) if found else HIGHEST_VERSION


def set_aside(store: Path, table: str, manifest: Path) -> None:
    """Moves a manifest to `torn/`."""
    (store / FOLDER).mkdir(exist_ok=True)
    manifest.rename(store / FOLDER / f"{table}-{manifest.name}")
    (manifest.parent / VERSION_HINT).unlink(missing_ok=True)
