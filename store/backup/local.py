"""A store's files as of one commit, elsewhere; and back again.

Lance never changes a file that it has written, so a backup holds links to the files where it lies on the same disk, and
copies where it does not. It is taken while commits go on: which files belong to it is settled between two of them. The
inbox, where the daemon keeps what it has accepted and not committed yet, belongs to it.
"""

import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from store.durable_files import sync
from store.errors import StoreError
from store.lance.checksums import NAME as CHECKSUMS
from store.lance.layout import table_folder
from store.lance.schema import TABLES
from store.log.commits import HEAD, Commit
from store.log.store_lock import StoreLock
from store.sessions import FOLDER as SESSIONS
from store.store import Store

NOTE = "backup.json"
INBOX = "inbox"
"""A folder in the store's that the store itself never reads (`daemon.pipeline.incoming.inbox`)."""

WAITING = "inbox.backup"
"""Links to the files of the inbox between the two commits: a document leaves the inbox as soon as it is committed."""

POSITIONS_KEY = "positions.key"
"""A file that the store itself never reads (`daemon.services.client_positions`). No backup has it: positions that clients were
given before a restore name nothing after it."""

RESTORING = "restoring"
"""A file that is in a store while a restore is under way: with it, the store is incomplete."""


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup holds: the memory at `commit`, made at `time` (Unix seconds), what had been accepted, and the sessions."""

    commit: int
    time: float
    files: int
    bytes: int


def backup(
    store: Store, target: Path, report: Callable[[str, int, int | None], None] = lambda _step, _done, _total: None
) -> Backup:
    """Writes the present commit to `target`, which must be absent or empty. Raises StoreError or OSError.

    `report` is called with the step, and how many files of how many it has done.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StoreError(f"{target} is there already; name a directory that does not exist or is empty")
    if target.resolve().is_relative_to(store.folder.resolve()):
        raise StoreError(f"{target} lies in the store; a backup belongs elsewhere")
    place = target.with_name(f".{target.name}.unfinished")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    last, sizes = collect(store, place, report)
    made = Backup(last.seq, last.time, len(sizes), sum(sizes.values()))
    write_note(place / NOTE, made, sizes, time.time())
    synced = 0
    for folder, _, names in os.walk(place):
        for name in names:
            sync(Path(folder, name))
            synced += 1
            report("waiting for the disk", synced, len(sizes) + 1)
        sync(Path(folder))
    if target.exists():
        target.rmdir()
    place.rename(target)
    sync(target.parent)
    return made


def write_note(path: Path, made: Backup, sizes: dict[str, int], at: float) -> None:
    """Says what a folder of a backup holds: each file's size by name, and when it was taken."""
    path.write_text(json.dumps(asdict(made) | {"sizes": sizes, "made": at}))


def collect(
    store: Store, place: Path, report: Callable[[str, int, int | None], None], *, snapshots: bool = True
) -> tuple[Commit, dict[str, int]]:
    """Links (or copies) the files of the present commit to `place`; returns the commit, and each file's size by name.

    Names are relative to the store. `snapshots`: with what only makes a start faster. Raises OSError.
    """
    with store.maintenance_paused():
        waiting = store.folder / WAITING
        shutil.rmtree(waiting, ignore_errors=True)
        with store.commits_paused() as last:
            files = _files(store.folder, snapshots)
            for accepted in (store.folder / INBOX).glob("*.jsonl"):
                with suppress(FileNotFoundError):  # its documents are committed, or replaced by later ones
                    _place(accepted, waiting / accepted.name)
            for session in (store.folder / SESSIONS).glob("[!.]*.json"):
                with suppress(FileNotFoundError):  # removed meanwhile
                    _place(session, waiting / SESSIONS / session.name)
            # A copy: the file grows with the next commit.
            waiting.mkdir(exist_ok=True)
            shutil.copy2(store.checksums.path, waiting / CHECKSUMS)
        sources = {name: store.folder / name for name in files}
        sources[CHECKSUMS] = waiting / CHECKSUMS
        sources |= {f"{INBOX}/{path.name}": path for path in sorted(waiting.glob("*.jsonl"))}
        sources |= {f"{SESSIONS}/{path.name}": path for path in sorted((waiting / SESSIONS).glob("*.json"))}
        sizes = {}
        for number, (name, source) in enumerate(sources.items()):
            report("copying", number, len(sources))
            _place(source, place / name)
            sizes[name] = (place / name).stat().st_size
        shutil.rmtree(waiting, ignore_errors=True)
    return last, sizes


def restore(source: Path, folder: Path) -> tuple[Backup, Path]:
    """Puts the backup in `source` in the place of the store in `folder`; returns it and where the old tables went.

    Raises StoreLocked while a hippod has the store open, StoreError where `source` is no whole backup. Nothing in the
    store changes before the backup has been copied beside it.
    """
    try:
        note = json.loads((source / NOTE).read_text())
        made = Backup(note["commit"], note["time"], note["files"], note["bytes"])
        sizes: dict[str, int] = note["sizes"]
        lacking = [name for name, size in sizes.items() if (source / name).stat().st_size != size]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{source} is no whole backup of a store: {error}") from error
    if lacking:
        raise StoreError(f"{source} is no whole backup of a store: {lacking[0]} is not as long as it was")
    folder.mkdir(parents=True, exist_ok=True)
    with StoreLock(folder):
        fresh = folder / "restored.new"
        shutil.rmtree(fresh, ignore_errors=True)
        for name in sizes:
            _place(source / name, fresh / name)
        aside = folder / time.strftime("before-restore-%Y%m%dT%H%M%S", time.gmtime())
        aside.mkdir(exist_ok=True)
        (folder / RESTORING).write_text(str(source))
        sync(folder)
        for old in [
            folder / HEAD,
            folder / CHECKSUMS,
            folder / POSITIONS_KEY,
            folder / INBOX,
            folder / SESSIONS,
            *folder.glob("snapshot-*"),
            *(table_folder(folder, name) for name in TABLES),
        ]:
            if old.exists():
                old.rename(aside / old.name)
        for new in fresh.iterdir():
            new.rename(folder / new.name)
        fresh.rmdir()
        for place, _, names in os.walk(folder):
            for name in names:
                sync(Path(place, name))
            sync(Path(place))
        (folder / RESTORING).unlink()
        sync(folder)
    return made, aside


def _files(folder: Path, snapshots: bool) -> list[str]:
    """The files of all tables, and of the snapshot where wanted, relative to the store."""
    roots = [*(table_folder(folder, name) for name in TABLES), *(folder.glob("snapshot-*") if snapshots else ())]
    found = [path for root in roots for path in root.rglob("*") if path.is_file()]
    return sorted(str(path.relative_to(folder)) for path in found)


def _place(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
