"""Sets aside table versions that a power loss left incomplete, before Lance opens the table.

A commit is acknowledged once its files are flushed, so a version with incomplete files was never part of an acknowledged
commit. But Lance always opens the newest version. An empty or truncated manifest, which a file system leaves if it wrote
the name but not the content, would make the whole store unusable. A manifest full of zeros would be opened as an empty
table. `store.log.commits` detects whether too much is missing afterwards: it knows the content of the last commit and the
last acknowledged commit.
"""

from collections.abc import Callable
from pathlib import Path

from store.lance.layout import VERSION_HINT, is_whole, manifests, table_folder

FOLDER = "torn"
"""Folder inside the store for such manifests."""


def set_aside_torn(store: Path, table: str) -> int:
    """Moves the newest, incompletely written manifests of a table to `torn/`. Returns their number."""
    count = 0
    for manifest in manifests(table_folder(store, table)):
        if is_whole(manifest):
            break
        _set_aside(store, table, manifest)
        count += 1
    return count


def set_aside_newest(store: Path, table: str, read: Callable[[], object]) -> bool:
    """Calls `read`; if it fails, sets the newest version aside and calls it again. Returns whether it set a version aside.

    Used for the log: a torn data file is noticed only when it is read, and no other table knows what the log should
    contain.
    """
    try:
        read()
    except (OSError, RuntimeError, ValueError):
        present = manifests(table_folder(store, table))
        if len(present) < 2:
            raise
        _set_aside(store, table, present[0])
        read()
        return True
    return False


def _set_aside(store: Path, table: str, manifest: Path) -> None:
    (store / FOLDER).mkdir(exist_ok=True)
    manifest.rename(store / FOLDER / f"{table}-{manifest.name}")
    (manifest.parent / VERSION_HINT).unlink(missing_ok=True)
