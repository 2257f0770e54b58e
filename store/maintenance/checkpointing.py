"""The checkpoint of a running store: written beside queries and commits, read to its end once, given up where it must go."""

from collections.abc import Callable
from pathlib import Path

import structlog

from store.checkpoint.adopt import adopt_files
from store.checkpoint.capture import capture
from store.checkpoint.files import PREFIX, CheckpointTimeout, damaged_file, discard, newest
from store.checkpoint.reader import map_texts
from store.checkpoint.writer import write
from store.index.columns.documents import map_passages
from store.index.live_index import LiveIndex
from store.log.commits import Commit
from store.log.write_lock import WriteLock
from store.maintenance.merge_deltas import Folding
from store.types import SynonymRule

log = structlog.get_logger(__name__)

POLL_S = 0.1
"""How often a checkpoint that waits for its turn asks whether there is time left for it."""


class Checkpointing:
    """May be asked from any thread."""

    def __init__(
        self,
        folder: Path,
        rule: SynonymRule,
        opened: int | None,
        write_lock: WriteLock,
        folding: Folding,
        current: Callable[[], tuple[LiveIndex, Commit]],
        publish: Callable[[LiveIndex], None],
    ) -> None:
        """`opened`: the commit of the checkpoint that the store was opened from, None without one. `current` gives the live
        index and the last commit. `publish` is called once the index has other arrays: the snapshot that there is holds the
        earlier ones."""
        self._folder = folder
        self._rule = rule
        self._write_lock = write_lock
        self._folding = folding
        self._current = current
        self._publish = publish
        self._commit = opened
        """The commit of the checkpoint that a start would use."""
        self._unread = newest(folder) if opened is not None else None
        """The checkpoint that was opened, until all of it is read."""

    def write(self, timed_out: Callable[[], bool]) -> bool:
        """Folds, and writes the memory down for a fast start; False where the last commit has a checkpoint. Raises OSError.

        Commits wait only while the index is captured: some 50 ms a million phrases. Once `timed_out()` is true it raises
        CheckpointTimeout, and the checkpoint before stays the last.
        """

        def check_time() -> None:
            if timed_out():
                raise CheckpointTimeout

        while not self._folding.lock.acquire(timeout=POLL_S):
            check_time()
        try:
            return self._write(check_time)
        finally:
            self._folding.lock.release()

    def _write(self, check_time: Callable[[], None]) -> bool:
        """The caller holds the lock of `_folding`."""
        with self._write_lock.hold("checkpoint"):
            index, commit = self._current()
            if self._commit == commit.seq and (self._folder / f"{PREFIX}{commit.seq}").exists():
                return False
            captured = capture(index, commit.seq, commit.time)
        if captured is None:
            return False
        folded = {}
        for name, view in captured.matrices.items():
            check_time()
            folded[name] = view.merged()
        lengths = {name: view.log_length for name, view in captured.matrices.items()}
        with self._write_lock.hold("checkpoint"):
            self._folding.adopt(index, folded, lengths)
        place = write(self._folder, captured, folded, self._rule, check_time)
        if self._unread is not None:
            self._unread = place  # what was linked bears the checksum that it had
        map_passages(list(captured.documents.values()), map_texts(place, "documents"))
        with self._write_lock.hold("checkpoint"):
            adopt_files(index, captured, place)
            self._publish(index)
        self._commit = commit.seq
        return True

    def check(self) -> bool:
        """Reads what opening mapped from the checkpoint and did not read; False where it is damaged, and gone now: the index
        has to be loaded anew. O(vectors), once after a start; commits and queries go on meanwhile."""
        place = self._unread
        if place is None:
            return True
        try:
            damaged = damaged_file(place)
        except (OSError, ValueError) as error:
            damaged = str(error)
        with self._folding.lock:
            if self._unread != place:  # written anew meanwhile, with the same blocks: it is read the next time
                return True
            self._unread = None
            if damaged is None:
                return True
            self._discard()
        log.error("checkpoint_damaged", checkpoint=place.name, file=damaged)
        return False

    def renew(self) -> None:
        """Writes the checkpoint anew after a purge, or gives it up: what was purged is to leave the disk, and may be in it."""
        if newest(self._folder) is None:
            return
        try:
            if self.write(lambda: False):
                return
        except OSError as error:
            log.warning("checkpoint_failed", error=str(error))
        with self._folding.lock:
            self._discard()

    def _discard(self) -> None:
        discard(self._folder)
        self._commit = None
