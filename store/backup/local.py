"""Backs up a store's files as of one commit to a folder, and restores them.

Lance never changes a file once it is written. A backup on the same file system therefore consists of links to the files;
otherwise it consists of copies. Commits continue during a backup; its list of files is determined between two commits. A backup
also contains the inbox, in which the daemon keeps accepted documents until they are committed.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from store.backup_layout import INBOX, RESTORING, SUMMARY, Backup, place_file, sync_all, write_summary
from store.checkpoint.files import PREFIX
from store.durable_files import durable_file, new_folder_before_restore, sync, unfinished_folder
from store.errors import StoreError
from store.lance.checksums import NAME as CHECKSUMS
from store.lance.layout import TABLE_SUFFIX, table_folder
from store.lance.schema import TABLES
from store.log.commit_history import Commit
from store.log.mark import NAME as MARK
from store.log.mark import Mark, check_mark
from store.log.store_lock import StoreLock
from store.log.write_ahead_log import FOLDER as LOG
from store.log.write_ahead_log import HEAD
from store.log.write_ahead_log import SUFFIX as LOG_SUFFIX
from store.sessions import FOLDER as SESSIONS
from store.store import Store
from store.untrusted_names import UnsafeName, components, inside, open_inside

WAITING = "inbox.backup"
"""Name of the folder with links to the inbox's files. The links are made between two commits, because a document leaves the
inbox as soon as it is committed."""

POSITIONS_KEY = "positions.key"
"""Name of the file with the key with which the daemon encrypts positions for clients (`daemon.services.freshness`). Backups do
not contain it, so positions that clients received before a restore are invalid afterwards."""

RESTORED = "restored.new"
"""Name of the folder in the store's folder that a restore fills before it changes anything else."""
COPY_BYTES = 8 << 20


def backup(
    store: Store, target: Path, report: Callable[[str, int, int | None], None] = lambda _step, _done, _total: None
) -> Backup:
    """Backs up the current commit to `target`, which must be missing or empty. Raises StoreError or OSError.

    `report` is called with the step, the number of files processed so far, and the total number of files.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StoreError(f"{target} exists already; name a directory that does not exist or is empty")
    if target.resolve().is_relative_to(store.folder.resolve()):
        raise StoreError(f"{target} is in the store's folder; choose a folder outside it")
    place = inside(target.parent, f".{target.name}.unfinished")
    with unfinished_folder(place):
        last, sizes = collect(store, place, report)
        made = write_summary(place, last.seq, last.time, sizes, time.time())
        sync_all(place, lambda synced: report("flushing to disk", synced, len(sizes) + 1))
        if target.exists():
            target.rmdir()
        place.rename(target)
    sync(target.parent)
    return made


def collect(
    store: Store, place: Path, report: Callable[[str, int, int | None], None], *, checkpoint: bool = True
) -> tuple[Commit, dict[str, int]]:
    """Links or copies the files of the current commit to `place`. Returns the commit, and the size of each file by name.

    Names are relative to the store's folder. `checkpoint`: whether to include the checkpoint, which only speeds up a start.
    Raises OSError.
    """
    with store.maintenance_paused():
        waiting = store.folder / WAITING
        shutil.rmtree(waiting, ignore_errors=True)
        try:
            with store.commits_paused(flush=True) as last:
                check_mark(store.folder, Mark(last.seq, store.table_versions()))
                sources = {name: inside(store.folder, name) for name in _files(store.folder, checkpoint)}
                for folder, pattern in ((INBOX, "*.jsonl"), (SESSIONS, "[!.]*.json")):
                    for path in sorted((store.folder / folder).glob(pattern)):
                        name = f"{folder}/{path.name}"
                        with suppress(
                            FileNotFoundError
                        ):  # the daemon committed, replaced or removed the file meanwhile
                            place_file(path, inside(waiting, name))
                            sources[name] = inside(waiting, name)
                # Copied rather than linked, because the file grows with the next commit.
                waiting.mkdir(mode=0o700, exist_ok=True)
                sources[CHECKSUMS] = inside(waiting, CHECKSUMS)
                shutil.copy2(store.checksums.path, sources[CHECKSUMS])
            sizes = {}
            for number, (name, source) in enumerate(sources.items()):
                report("copying", number, len(sources))
                target = inside(place, name)
                place_file(source, target)
                sizes[name] = target.stat().st_size
        finally:
            shutil.rmtree(waiting, ignore_errors=True)
    return last, sizes


def restore(source: Path, folder: Path, *, fetched: bool = False) -> tuple[Backup, Path]:
    """Replaces the store in `folder` with the backup in `source`. Returns the backup and the folder with the old files.

    Files are copied rather than linked, so that the author of the backup cannot change the store through links. `fetched`: this
    process has written and checked the files in `source`, so they are linked. The store is unchanged until all files of the
    backup are in its folder.

    Raises StoreLocked while a hippod has the store open; StoreError if `source` is not a complete backup or names files that a
    store does not have.
    """
    made, sizes = _read_summary(source)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with StoreLock(folder):
        fresh = _new_folder(folder, RESTORED)
        for name, size in sizes.items():
            if fetched:
                place_file(inside(source, name), inside(fresh, name))
            else:
                _copy(source, fresh, name, size)
        sync_all(fresh)
        aside = new_folder_before_restore(folder)
        with durable_file(folder / RESTORING) as note:
            note.write(os.fsencode(source))
        for old in [
            folder / HEAD,
            folder / CHECKSUMS,
            folder / LOG,
            folder / POSITIONS_KEY,
            folder / INBOX,
            folder / SESSIONS,
            *folder.glob(f"{PREFIX}*"),
            *(table_folder(folder, name) for name in TABLES),
        ]:
            if os.path.lexists(old):
                old.rename(aside / old.name)
        for new in fresh.iterdir():
            new.rename(folder / new.name)
        fresh.rmdir()
        sync(aside)
        sync(folder)
        (folder / RESTORING).unlink()
        sync(folder)
    return made, aside


def _read_summary(source: Path) -> tuple[Backup, Mapping[str, int]]:
    """Returns the description of the backup in `source`, and the size of each file by name. Raises StoreError."""
    try:
        with os.fdopen(open_inside(source, SUMMARY)) as file:
            note = json.load(file)
        made = Backup(note["commit"], note["time"], note["files"], note["bytes"])
        sizes: dict[str, int] = note["sizes"]
        check_names(sizes)
        lacking = [name for name, size in sizes.items() if inside(source, name).stat().st_size != size]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"{source} is not a complete backup of a store: {error}") from error
    if lacking:
        raise StoreError(f"{source} is not a complete backup of a store: {lacking[0]} has the wrong length")
    return made, sizes


_TOP = re.compile(
    "|".join([INBOX, SESSIONS, LOG, rf"{PREFIX}\d+", *(re.escape(f"{name}{TABLE_SUFFIX}") for name in TABLES)])
)
"""Matches the folders of a store whose files a backup may contain."""

_LOG_FILE = re.compile(rf"{LOG}/(?:{MARK}|\d{{20}}-[0-9a-f]+{re.escape(LOG_SUFFIX)})")


def check_names(names: Iterable[str]) -> None:
    """Raises UnsafeName if a name does not belong to a file that a backup may contain."""
    for name in names:
        top, *below = components(name)
        is_known = _LOG_FILE.fullmatch(name) if top == LOG else below and _TOP.fullmatch(top)
        if name != CHECKSUMS and not is_known:
            raise UnsafeName(
                f"its list of files names {name!r}, which is not a file of a store; did hippod make this backup?"
            )


def _new_folder(parent: Path, name: str) -> Path:
    """Creates an empty folder with this name; deletes any file or folder that had the name before."""
    place = parent / name
    if place.is_symlink() or (place.exists() and not place.is_dir()):
        place.unlink()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    return place


def _files(folder: Path, checkpoint: bool) -> list[str]:
    """Returns the files of all tables, the mark, and with `checkpoint` the checkpoint's files, relative to the store.

    The tables contain all commits, so the log's files are not needed.
    """
    roots = [*(table_folder(folder, name) for name in TABLES), *(folder.glob(f"{PREFIX}*") if checkpoint else ())]
    found = [folder / LOG / MARK, *(path for root in roots for path in root.rglob("*") if path.is_file())]
    return sorted(str(path.relative_to(folder)) for path in found)


def _copy(source: Path, target: Path, name: str, size: int) -> None:
    """Copies the file `name`, including its times, from a backup whose author is not trusted."""
    with (
        os.fdopen(open_inside(source, name), "rb") as read,
        os.fdopen(open_inside(target, name, create=True), "wb") as written,
    ):
        shutil.copyfileobj(read, written, COPY_BYTES)
        written.flush()
        found = os.fstat(read.fileno())
        os.utime(written.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
        if written.tell() != size:
            raise StoreError(f"{source} is not a complete backup of a store: {name} changed while it was copied")
