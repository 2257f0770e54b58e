"""The checkpoint of a running store: written concurrently with queries and commits, verified once, discarded if invalid."""

from collections.abc import Callable
from pathlib import Path

import structlog

from store.checkpoint.files import PREFIX, CheckpointTimeout, damaged_file, discard, newest
from store.checkpoint.writer import capture, swap_in, write
from store.index.live_index import LiveIndex
from store.log.commit_history import Commit
from store.log.write_lock import WriteLock
from store.maintenance.merge_deltas import DeltaMerger

log = structlog.get_logger(__name__)

POLL_S = 0.1
"""Poll interval in seconds while a checkpoint waits for a fold to end."""


class Checkpointing:
    """Writes, verifies and discards checkpoints. Thread-safe."""

    def __init__(
        self,
        folder: Path,
        opened: int | None,
        write_lock: WriteLock,
        folding: DeltaMerger,
        current: Callable[[], tuple[LiveIndex, Commit]],
        publish: Callable[[LiveIndex], None],
    ) -> None:
        """- `opened`: the commit of the checkpoint that the store was opened from, or None.
        - `current`: returns the live index and the last commit.
        - `publish`: called after arrays of the index were replaced, because the present snapshot refers to the old ones.
        """
        self._folder = folder
        self._write_lock = write_lock
        self._delta_merger = folding
        self._current = current
        self._publish = publish
        self._commit = opened
        """The commit of the checkpoint that a start would use."""
        self._unread = newest(folder) if opened is not None else None
        """The checkpoint that the store was opened from, until it has been verified."""

    def write(self, timed_out: Callable[[], bool]) -> bool:
        """Writes a checkpoint, which also folds the matrices. Returns False if the last commit has one already. Raises OSError.

        Commits wait only while the index is captured, about 50 ms for a million phrases. Once `timed_out()` is true, raises
        CheckpointTimeout; the previous checkpoint stays.
        """

        def check_time() -> None:
            if timed_out():
                raise CheckpointTimeout

        while not self._delta_merger.lock.acquire(timeout=POLL_S):
            check_time()
        try:
            return self._write(check_time)
        finally:
            self._delta_merger.lock.release()

    def _write(self, check_time: Callable[[], None]) -> bool:
        """The caller holds the lock of `_delta_merger`."""
        with self._write_lock.hold("checkpoint"):
            index, commit = self._current()
            if self._commit == commit.seq and (self._folder / f"{PREFIX}{commit.seq}").exists():
                return False
            captured = capture(index, commit.seq, commit.time)
        if captured is None:
            return False
        files = write(self._folder, captured, check_time)
        if self._unread is not None:
            # Linked files keep their recorded checksums, so the new checkpoint still needs the check.
            self._unread = files.place
        with self._write_lock.hold("checkpoint"):
            swap_in(index, captured, files)
            self._publish(index)
        self._commit = commit.seq
        return True

    def check(self) -> bool:
        """Verifies the files that opening mapped without reading. Returns False after discarding a damaged checkpoint.

        The index must then be loaded from the tables. O(vectors), once after a start, concurrently with commits and queries.
        """
        place = self._unread
        if place is None:
            return True
        try:
            damaged = damaged_file(place)
        except (OSError, ValueError) as error:
            damaged = str(error)
        with self._delta_merger.lock:
            if self._unread != place:  # rewritten meanwhile with the same blocks: the next call reads it
                return True
            self._unread = None
            if damaged is None:
                return True
            self.discard()
        log.error("checkpoint_damaged", checkpoint=place.name, file=damaged)
        return False

    def renew(self) -> None:
        """Rewrites the checkpoint after a purge, or discards it: purged data must leave the disk."""
        if newest(self._folder) is None:
            return
        try:
            if self.write(lambda: False):
                return
        except OSError as error:
            log.warning("checkpoint_failed", error=str(error))
        with self._delta_merger.lock:
            self.discard()

    def discard(self) -> None:
        """Removes the checkpoint. The caller holds the lock of `folding`."""
        discard(self._folder)
        self._commit = self._unread = None
