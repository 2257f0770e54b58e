"""What a power loss leaves of a table's version that was being written: taken out of the way before Lance meets it.

A commit is acknowledged once its files are flushed, so a version whose files are not whole was never part of one. But
Lance opens the newest version there is, and a manifest that is empty or full of zeros, as a file system that had its name
and not its content leaves it, would keep the whole store shut. Whether too much is missing afterwards is for
`store.log.commits` to see: it knows what the last commit holds, and which one was acknowledged last.
"""

from collections.abc import Callable
from pathlib import Path

MAGIC = b"LANC"
"""Ends every file that Lance has written to its end."""

FOLDER = "torn"
"""Where such manifests go, inside the store."""

HINT = "latest_version_hint.json"


def set_aside_torn(store: Path, table: str) -> int:
    """Moves the newest manifests of `<table>.lance` that do not end as they must to `torn/`; returns how many."""
    count = 0
    while (manifest := _newest(store, table)) is not None and not _whole(manifest):
        _set_aside(store, table, manifest)
        count += 1
    return count


def set_aside_newest(store: Path, table: str, readable: Callable[[], object]) -> bool:
    """Calls `readable`; where it fails, moves the newest version away and calls it once more. Returns whether it did.

    For the log itself: that a data file is torn shows only when it is read, and no other table says what it should hold.
    """
    try:
        readable()
    except (OSError, RuntimeError, ValueError):
        manifest = _newest(store, table)
        if manifest is None or _only(manifest):
            raise
        _set_aside(store, table, manifest)
        readable()
        return True
    return False


def _newest(store: Path, table: str) -> Path | None:
    """Lance counts its manifests' names down, so that the newest version comes first."""
    return min((store / f"{table}.lance" / "_versions").glob("*.manifest"), default=None, key=lambda path: path.name)


def _only(manifest: Path) -> bool:
    return len(list(manifest.parent.glob("*.manifest"))) == 1


def _whole(manifest: Path) -> bool:
    with manifest.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - len(MAGIC), 0))
        return file.read() == MAGIC


def _set_aside(store: Path, table: str, manifest: Path) -> None:
    (store / FOLDER).mkdir(exist_ok=True)
    manifest.rename(store / FOLDER / f"{table}-{manifest.name}")
    (manifest.parent / HINT).unlink(missing_ok=True)
