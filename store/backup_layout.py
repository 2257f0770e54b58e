"""Layout of a backup in a folder: the store's files under their names, and `backup.json`, which lists them."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from store.durable_files import sync
from store.untrusted_names import inside

SUMMARY = "backup.json"
RESTORING = "restoring"
"""Name of the file that marks a store as incomplete while a restore is in progress."""
INBOX = "inbox"
"""The daemon's inbox (`daemon.pipeline.incoming.inbox`), a folder inside the store's folder. The store never reads it."""


@dataclass(frozen=True, slots=True)
class Backup:
    """Summary of a backup: its commit, the commit's time (Unix seconds), and number and size of its files."""

    commit: int
    time: float
    files: int
    bytes: int


def write_summary(place: Path, commit: int, time: float, sizes: Mapping[str, int], made: float) -> Backup:
    """Writes `backup.json` in `place` and returns the backup's summary. The file contains the summary, `sizes` (bytes by file
    name), and `made`, the time at which the backup was taken (Unix seconds)."""
    backup = Backup(commit, time, len(sizes), sum(sizes.values()))
    (place / SUMMARY).write_text(json.dumps(asdict(backup) | {"sizes": sizes, "made": made}))
    return backup


def place_file(source: Path, target: Path) -> None:
    """Makes `target` a hard link to the trusted file `source`, or a copy if `source` is on another file system."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copy2(source, target)


def sync_all(place: Path, report: Callable[[int], None] = lambda _synced: None) -> None:
    """Flushes all files and folders at and below `place`. Calls `report` with the number of flushed files after each."""
    synced = 0
    for folder, _, names in os.walk(place):
        for name in names:
            sync(inside(Path(folder), name))
            synced += 1
            report(synced)
        sync(Path(folder))
