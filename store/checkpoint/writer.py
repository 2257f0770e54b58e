"""The checkpoint of a running store: written concurrently with queries and commits, verified once, discarded if damaged."""

import json
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import structlog

from store.checkpoint.files import (
    MANIFEST,
    PREFIX,
    UNFINISHED,
    CheckpointTimeout,
    damaged_file,
    discard,
    newest,
    settings,
)
from store.durable_files import json_checksum, sync, unfinished_folder
from store.index.live_index import KINDS
from store.index.part import Part, PartFiles, PartWriter
from store.live_memory import LiveMemory

logger = structlog.get_logger(__name__)

MAX_PURGED_SHARE = 0.25
"""Share of purged rows above which no checkpoint is written, because the index must be rebuilt first."""

POLL_S = 0.1
"""Interval in seconds between checks of the time limit while a checkpoint waits for a fold to end."""


class Checkpointing:
    """Writes, verifies and discards checkpoints. Thread-safe."""

    def __init__(
        self,
        folder: Path,
        opened: int | None,
        live: LiveMemory,
        folding: threading.Lock,
    ) -> None:
        """- `opened`: the commit of the checkpoint from which the store was opened, or None.
        - `folding`: the lock that is held while bases of the index are replaced (`store.maintenance.merge_deltas`).
        """
        self._folder = folder
        self._folding = folding
        self._live = live
        self._commit = opened
        """The commit of the checkpoint that a start would use now."""
        self._unverified = newest(folder) if opened is not None else None
        """The checkpoint from which the store was opened; None once it has been verified."""

    def write(self, timed_out: Callable[[], bool]) -> bool:
        """Folds the matrices and writes a checkpoint. Returns False if the last commit already has a checkpoint, or if so many
        rows of the index were purged that `Store.rebuild_index` must be called first. Raises OSError.

        Commits wait only while the index is copied: about 50 ms for a million phrases. Once `timed_out()` is true, raises
        CheckpointTimeout and keeps the previous checkpoint.
        """

        def check_time() -> None:
            if timed_out():
                raise CheckpointTimeout

        while not self._folding.acquire(timeout=POLL_S):
            check_time()
        try:
            return self._write(check_time)
        finally:
            self._folding.release()

    def _write(self, check_time: Callable[[], None]) -> bool:
        """The caller must hold `_folding`."""
        with self._live.commits.write_lock.hold("checkpoint"):
            index, commit = self._live.index, self._live.commits.last
            if self._commit == commit.seq and (self._folder / f"{PREFIX}{commit.seq}").exists():
                return False
            if index.purged_rows > MAX_PURGED_SHARE * sum(map(index.size, KINDS)):
                return False
            parts = [(name, part.copy()) for name, part in index.parts()]
            manifest = {
                "settings": settings(index.dim, index.rule),
                "commit": commit.seq,
                "time": commit.time,
                "next_id": dict(index.next_id),
            }
        files = _write_folder(self._folder, commit.seq, manifest, parts, check_time)
        for name, part in parts:
            part.saved(files, name)
        if self._unverified is not None:
            # Files that are hard links keep their recorded checksums, so the new checkpoint still has to be verified.
            self._unverified = files.place

        def map_saved() -> None:
            # The disk then contains the data only once, and the next checkpoint can link the files.
            for (name, part), (_, saved) in zip(index.parts(), parts, strict=True):
                part.map_saved(files, name, saved)

        with self._live.commits.write_lock.hold("checkpoint"):
            self._live.swap(index, map_saved)
        self._commit = commit.seq
        return True

    def check(self) -> bool:
        """See `Store.check_checkpoint`. Discards a damaged checkpoint and returns False; the caller must reload the index."""
        place = self._unverified
        if place is None:
            return True
        try:
            damaged = damaged_file(place)
        except (OSError, ValueError) as error:
            damaged = str(error)
        with self._folding:
            if self._unverified != place:  # replaced meanwhile; the next call verifies the new one
                return True
            self._unverified = None
            if damaged is None:
                return True
            self.discard()
        logger.error("checkpoint_damaged", checkpoint=place.name, file=damaged)
        return False

    def renew(self) -> None:
        """Rewrites the checkpoint after a purge, because purged data must leave the disk; if no checkpoint is written, discards
        the old one."""
        if newest(self._folder) is None:
            return
        try:
            if self.write(lambda: False):
                return
        except OSError as error:
            logger.warning("checkpoint_failed", error=str(error))
        with self._folding:
            self.discard()

    def discard(self) -> None:
        """Removes the checkpoint. The caller must hold `folding`."""
        discard(self._folder)
        self._commit = self._unverified = None


def _write_folder(
    folder: Path,
    commit: int,
    manifest: Mapping[str, Any],
    parts: Iterable[tuple[str, Part]],
    check_time: Callable[[], None],
) -> PartFiles:
    """Writes the checkpoint of `commit` and removes older checkpoints.

    Calls `check_time` before each file; its exceptions end the writing. Raises OSError. After an error, no unfinished files
    remain.
    """
    place = folder / UNFINISHED
    with unfinished_folder(place):
        files = _write_files(place, newest(folder), manifest, parts, check_time)
        final = folder / f"{PREFIX}{commit}"
        shutil.rmtree(final, ignore_errors=True)
        place.rename(final)
    sync(folder)
    for other in folder.glob(f"{PREFIX}*"):
        if other != final:
            shutil.rmtree(other, ignore_errors=True)
    return PartFiles(final, files.files, files.values)


def _write_files(
    place: Path,
    before: Path | None,
    manifest: Mapping[str, Any],
    parts: Iterable[tuple[str, Part]],
    check_time: Callable[[], None],
) -> PartWriter:
    known: Mapping[str, list[int]] = {}
    if before is not None:
        try:
            known = json.loads((before / MANIFEST).read_text())["files"]
        except (OSError, ValueError, KeyError):
            before = None
    files = PartWriter(place, before, known, check_time)
    for name, part in parts:
        check_time()
        part.save(files, name)
    written = {**manifest, "values": files.values, "files": files.files}
    checksum = json_checksum(json.loads(json.dumps(written)))
    (place / MANIFEST).write_text(json.dumps(written | {"checksum": checksum}))
    sync(place / MANIFEST)
    sync(place)
    return files
