"""Takes away what a power loss left of a table's version that was being written, before Lance meets it.

A commit is acknowledged once its files are flushed, so a version whose files are not whole was never part of one. But Lance
opens the newest version there is. A manifest that is empty or cut, as a file system leaves it that had its name and not its
content, would keep the whole store shut; one full of zeros would be opened as a table without rows. Whether too much is missing
afterwards is for `store.log.commits` to see: it knows what the last commit holds, and which one was acknowledged last.
"""

from collections.abc import Callable
from pathlib import Path

from store.lance.layout import VERSION_HINT, is_whole, manifests, table_folder

FOLDER = "torn"
"""Where such manifests go, inside the store."""


def set_aside_torn(store: Path, table: str) -> int:
    """Moves the newest manifests of a table that were not written to their end to `torn/`; returns how many."""
    count = 0
    for manifest in manifests(table_folder(store, table)):
        if is_whole(manifest):
            break
        _set_aside(store, table, manifest)
        count += 1
    return count


def set_aside_newest(store: Path, table: str, read: Callable[[], object]) -> bool:
    """Calls `read`; where it fails, moves the newest version away and calls it once more. Returns whether it did.

    For the log itself: that a data file is torn shows only when it is read, and no other table says what it should hold.
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
