"""The backup that an upgrade makes before it migrates a store to a new format.

An older hippod refuses the migrated store. After `hippod --restore FOLDER`, run with the older hippod, the store is as before
the upgrade. The backup is in the store's folder, the only place that hippod can certainly write to. The backup consists of hard
links, so it uses disk space only for files that the migration and later maintenance replace. The store keeps one backup of each
earlier format for `KEEP_S` seconds.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import structlog

from store.backup_layout import INBOX, SUMMARY, place_file, sync_all, write_summary
from store.durable_files import sync, unfinished_folder
from store.errors import StoreRefused
from store.lance.checksums import NAME as CHECKSUMS
from store.lance.layout import table_folder
from store.lance.schema import TABLES
from store.log.write_ahead_log import FOLDER as LOG
from store.sessions import FOLDER as SESSIONS
from store.untrusted_names import inside

KEEP_S = 30 * 86400.0
"""Seconds for which the store keeps an upgrade backup. The administrator may delete the folder earlier."""

NAME = re.compile(r"upgrade-backup-format-(\d+)-commit-\d+")
UNFINISHED = "upgrade-backup.unfinished"
SPARE_BYTES = 16 << 20
"""Disk space in bytes that must remain free in addition to the space for the migrated tables."""

logger = structlog.get_logger(__name__)


def make_upgrade_backup(folder: Path, found_format: int, commit: int, committed_at: float) -> Path:
    """Backs up the store in `folder` before it is migrated. `commit` is its last commit. Returns the backup's folder.

    Raises StoreRefused if the disk has no room for the migrated tables, or OSError; the store is then unchanged.
    """
    files = sorted(_files(folder))
    unfinished = inside(folder, UNFINISHED)
    with unfinished_folder(unfinished):
        size = sum(path.stat().st_size for path in files)
        needed = SPARE_BYTES + (size if _links(files, unfinished) else 2 * size)
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise StoreRefused(
                f"the store {folder} has format {found_format}; the migration and the backup before it need {needed:,} bytes "
                f"of free disk space, and {free:,} are free. Nothing was changed: make room, then start hippod again"
            )
        sizes = {}
        for path in files:
            name = str(path.relative_to(folder))
            place_file(path, inside(unfinished, name))
            sizes[name] = path.stat().st_size
        # Copied rather than linked, because the file grows with the next commit.
        shutil.copy2(inside(folder, CHECKSUMS), inside(unfinished, CHECKSUMS))
        sizes[CHECKSUMS] = inside(unfinished, CHECKSUMS).stat().st_size
        made = write_summary(unfinished, commit, committed_at, sizes, time.time())
        sync_all(unfinished)
        target = inside(folder, f"upgrade-backup-format-{found_format}-commit-{commit}")
        replaced = [path for path in upgrade_backups(folder) if _format(path) == found_format]
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
        sync(folder)
    for path in replaced:
        if path != target:
            shutil.rmtree(path, ignore_errors=True)
    logger.info("upgrade_backup_made", path=target, format=found_format, files=made.files, bytes=made.bytes)
    return target


def upgrade_backups(folder: Path) -> list[Path]:
    """Returns the folders of the complete upgrade backups in the store's folder."""
    return sorted(path for path in folder.glob("upgrade-backup-*") if NAME.fullmatch(path.name))


def kept_until(backup: Path) -> float:
    """Returns when the store deletes the backup (Unix seconds). Raises ValueError if the backup's description is unreadable."""
    try:
        return float(json.loads((backup / SUMMARY).read_text())["made"]) + KEEP_S
    except (OSError, KeyError, TypeError) as error:
        raise ValueError(str(error)) from error


def remove_expired(folder: Path) -> None:
    """Deletes the backups older than `KEEP_S`."""
    for backup in upgrade_backups(folder):
        try:
            expired = kept_until(backup) < time.time()
        except ValueError:
            continue  # the administrator decides about a backup that hippod cannot read
        if expired:
            shutil.rmtree(backup, ignore_errors=True)
            logger.info("upgrade_backup_removed", path=backup)


def _format(backup: Path) -> int:
    found = NAME.fullmatch(backup.name)
    assert found is not None
    return int(found[1])


def _files(folder: Path) -> Iterator[Path]:
    """Yields the files of the tables, the log, the inbox and the sessions. Checkpoints can be derived from the tables."""
    for name in TABLES:
        yield from (path for path in table_folder(folder, name).rglob("*") if path.is_file())
    yield from (folder / LOG).glob("*")
    yield from (folder / INBOX).glob("*.jsonl")
    yield from (folder / SESSIONS).glob("[!.]*.json")


def _links(files: list[Path], place: Path) -> bool:
    """Whether the file system supports hard links from `place`."""
    try:
        os.link(files[0], place / SUMMARY)
    except OSError:
        return False
    (place / SUMMARY).unlink()
    return True
