"""Incremental backups to an object store: only contents that the object store lacks are sent.

Lance never changes a file once it is written, so earlier backups have already sent most files of a commit. The checkpoint is
omitted: it only makes a start faster, is replaced every few minutes, and would be most of the transferred data. The files are
linked inside the store's folder between two commits, so the transfer delays neither commits nor maintenance.
"""

import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store.backup.local import check_names, collect, restore
from store.backup.repository import BackupError, FileEntry, FileList, Repository, listed_at
from store.backup_layout import Backup, write_summary
from store.log.store_lock import StoreLock
from store.store import Store
from store.untrusted_names import UnsafeName, inside, open_inside

SENDING = "backup.sending"
"""Name of the folder in the store with links to a backup's files while they are sent. The store never reads it."""
FETCHED = "backup.fetched"
"""Name of the folder with the files that a restore has fetched so far; an interrupted restore continues with them."""
TRANSFERS = 8
"""Maximum number of concurrent transfers."""
PIECE_BYTES = 8 << 20
ORPHAN_AGE_S = 86400.0
"""Age in seconds at which a content that no backup names is deleted. A younger content may belong to a backup in progress."""

Report = Callable[[str, int, int | None], None]

_one_at_a_time = threading.Lock()


@dataclass(frozen=True, slots=True)
class Sent:
    """Result of sending a backup; `made` is the time at which it was made (Unix seconds). `sent_files` and `sent_bytes` count
    only newly sent contents; `pruned` is the number of deleted old backups."""

    backup: Backup
    name: str
    made: float
    sent_files: int
    sent_bytes: int
    pruned: int


def send(
    store: Store,
    url: str,
    report: Report = lambda _step, _done, _total: None,
    *,
    keep_s: float | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Sent:
    """Backs up the current commit to `url`. Raises BackupError or OSError.

    Backups older than `keep_s` seconds are then deleted, except the newest backup; None keeps all.
    """
    repository = Repository(url)
    if not _one_at_a_time.acquire(blocking=False):
        raise BackupError("another backup is being sent; try again once it is done")
    place = store.folder / SENDING
    try:
        lists = repository.lists()
        known = _known(repository, lists)
        there = repository.objects()
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=0o700)
        last, sizes = collect(store, place, report, checkpoint=False)
        entries = _entries(place, sizes, known, report, cancelled)
        lacking = {each.digest: name for name, each in entries.items() if there.get(each.digest) != each.size}

        def put(digest: str, name: str) -> None:
            _upload(repository, inside(place, name), digest, entries[name].size)

        _concurrently(put, lacking.items(), "sending", report, cancelled)
        listed = FileList(last.seq, last.time, time.time(), entries)
        repository.write_list(listed)
        pruned = _prune(repository, [*lists, listed.name], keep_s, report) if keep_s is not None else 0
    finally:
        shutil.rmtree(place, ignore_errors=True)
        _one_at_a_time.release()
    made = Backup(last.seq, last.time, len(sizes), sum(sizes.values()))
    return Sent(
        made, listed.name, listed.made, len(lacking), sum(entries[name].size for name in lacking.values()), pruned
    )


def fetch(url: str, folder: Path, report: Report = lambda _step, _done, _total: None) -> tuple[Backup, Path]:
    """Replaces the store in `folder` with a backup: the one that `url` names, or else the newest at `url`; see `local.restore`.

    Every file is compared with its digest. Files that an interrupted restore has already fetched are not fetched again.
    """
    repository = Repository(url)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    StoreLock(folder).release()  # fails now if hippod has the store open, not after an hour of fetching
    lists = repository.lists(expected=True)
    name = repository.chosen or (lists[-1] if lists else None)
    if name is None:
        raise BackupError(f"{repository.url} has no complete backup; is this the target of the backups?")
    listed = repository.read_list(name)
    try:
        check_names(listed.files)
    except UnsafeName as error:
        raise BackupError(f"{repository.url}: {error}") from error
    place = folder / FETCHED
    if place.is_symlink():
        place.unlink()
    place.mkdir(mode=0o700, exist_ok=True)
    for path in [path for path in place.rglob("*") if path.is_symlink() or not path.is_dir()]:
        if path.is_symlink() or str(path.relative_to(place)) not in listed.files:
            path.unlink()

    def get(name: str, entry: FileEntry) -> None:
        path = inside(place, name)
        if not (path.is_file() and path.stat().st_size == entry.size and _digest(path) == entry.digest):
            _download(repository, entry, place, name)

    _concurrently(get, listed.files.items(), "fetching", report, lambda: False)
    sizes = {name: entry.size for name, entry in listed.files.items()}
    write_summary(place, listed.commit, listed.time, sizes, listed.made)
    outcome = restore(place, folder, fetched=True)
    shutil.rmtree(place)
    return outcome


def _known(repository: Repository, lists: list[str]) -> dict[tuple[int, int, int], str]:
    """Returns the digests of the files of the newest readable backup, by (inode, size, modification time)."""
    for name in reversed(lists[-2:]):
        try:
            files = repository.read_list(name).files.values()
        except BackupError:  # the list is damaged: the files' digests are computed instead
            continue
        return {(each.inode, each.size, each.modified_ns): each.digest for each in files}
    return {}


def _entries(
    place: Path,
    sizes: dict[str, int],
    known: dict[tuple[int, int, int], str],
    report: Report,
    cancelled: Callable[[], bool],
) -> dict[str, FileEntry]:
    entries = {}
    for number, name in enumerate(sizes):
        if cancelled():
            raise BackupError("the backup was cancelled: hippod stops, or the client disconnected")
        report("finding new files", number, len(sizes))
        path = inside(place, name)
        found = path.stat()
        digest = known.get((found.st_ino, found.st_size, found.st_mtime_ns)) or _digest(path)
        entries[name] = FileEntry(digest, found.st_size, found.st_mtime_ns, found.st_ino)
    return entries


def _concurrently(
    work: Callable[[str, Any], None],
    items: Iterable[tuple[str, Any]],
    step: str,
    report: Report,
    cancelled: Callable[[], bool],
) -> None:
    """Calls `work` for all items concurrently. After an error, waits for the running transfers and raises the first error."""
    left = iter(items := list(items))
    running: set[Future[None]] = set()
    done = 0
    with ThreadPoolExecutor(TRANSFERS, thread_name_prefix="backup") as pool:
        while True:
            while len(running) < TRANSFERS and not cancelled() and (item := next(left, None)) is not None:
                running.add(pool.submit(work, *item))
            report(step, done, len(items))
            if not running:
                break
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for each in finished:
                each.result()
            done += len(finished)
    if done < len(items):
        raise BackupError(
            "the backup was cancelled: hippod stops, or the client disconnected; the next backup continues from here"
        )


def _upload(repository: Repository, path: Path, digest: str, size: int) -> None:
    """Uploads a file, with retries, and checks its digest and length."""

    def once() -> None:
        target = repository.object_path(digest)
        sent = hashlib.sha256()

        def pieces() -> Iterator[bytes]:
            with path.open("rb") as file:
                while piece := file.read(PIECE_BYTES):
                    sent.update(piece)
                    yield piece

        repository.put(target, pieces())
        if sent.hexdigest() != digest or repository.files.get_file_info(target).size != size:
            repository.files.delete_file(target)
            raise BackupError(f"{path.name} changed while it was sent; the backup was cancelled. Check the disk")

    repository.again(once, FileNotFoundError, transfer=True)


def _download(repository: Repository, entry: FileEntry, place: Path, name: str) -> None:
    """Downloads a file into `place`. Writes a new file, because an existing file of this name may be a link to another file."""

    def once() -> None:
        inside(place, name).unlink(missing_ok=True)
        read = hashlib.sha256()
        with (
            repository.files.open_input_stream(repository.object_path(entry.digest), compression=None) as file,
            os.fdopen(open_inside(place, name, create=True), "wb") as out,
        ):
            while piece := file.read(PIECE_BYTES):
                read.update(piece)
                out.write(piece)
        if read.hexdigest() != entry.digest:
            inside(place, name).unlink()
            raise OSError(
                f"{name} was downloaded with wrong content: its SHA-256 is {read.hexdigest()}, not {entry.digest}"
            )

    try:
        repository.again(once, FileNotFoundError, transfer=True)
    except FileNotFoundError as error:
        raise BackupError(
            f"{repository.url} has an incomplete backup: {name} (objects/{entry.digest[:2]}/{entry.digest}) is missing; "
            "choose an older backup by its name"
        ) from error


def _prune(repository: Repository, lists: list[str], keep_s: float, report: Report) -> int:
    """Deletes backups older than `keep_s` seconds, and contents that no other backup names. Returns the number of deleted
    backups."""
    now = time.time()
    old = [name for name in lists[:-1] if now - listed_at(name) > keep_s]
    if not old:
        return 0
    report("deleting old backups", 0, len(old))
    if repository.lists() != sorted(lists):
        return 0  # a listing was incomplete, or another backup is in progress: needed contents could look unused
    used = {each.digest for name in lists if name not in old for each in repository.read_list(name).files.values()}
    stale = repository.objects_older_than(now - ORPHAN_AGE_S)
    repository.remove(old, sorted(stale - used))
    return len(old)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
