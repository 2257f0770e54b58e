"""Keeps the number of table files small during commits: merges small fragments and deletes old versions.

Each job holds the write lock for one step at a time. Long work runs without it, concurrently with commits.
"""

import math
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

import structlog

from store.lance.fragments import FragmentRows
from store.lance.schema import TABLES
from store.lance.tables import Tables
from store.log.commits import CommitLog
from store.log.write_lock import WriteLock
from store.maintenance.retention import PURGE_SLICE_ROWS

log = structlog.get_logger(__name__)

PRUNE_MIN_AGE = timedelta(seconds=20)
"""Younger versions stay, because a reader may still use them."""

MERGE_AFTER_COMMITS = 64
"""Number of commits after which their small fragments are merged. Each fragment costs every commit about 0.1 ms."""


class Compactor:
    """Rearranges the tables' files. One operation at a time, and none inside `paused`."""

    def __init__(self, tables: Tables, log: CommitLog, writing: WriteLock) -> None:
        self._tables = tables
        self._log = log
        self._write_lock = writing
        self._lock = threading.Lock()
        self._merger = ThreadPoolExecutor(1, thread_name_prefix="merge")
        self._merging: Future[None] | None = None
        self._pruned_at = -math.inf
        """Time of the last pruning after a merge, by the monotonic clock."""

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Prevents all other operations on the files inside the `with` block."""
        with self._lock:
            yield

    def merge_when_due(self) -> None:
        """Starts merging the fragments of the last commits in the background, concurrently with commits and queries."""
        if self._tables.fragments.appended >= MERGE_AFTER_COMMITS and (self._merging is None or self._merging.done()):
            self._merging = self._merger.submit(self._merge_beside)

    def _merge_beside(self) -> None:
        # If files are being rearranged or must not be, the fragments stay: the next commit tries again.
        if not self._lock.acquire(blocking=False):
            return
        try:
            self.merge()
            if time.monotonic() - self._pruned_at >= PRUNE_MIN_AGE.total_seconds():
                self._pruned_at = time.monotonic()
                self.prune(PRUNE_MIN_AGE)
        except Exception:
            # Nothing reads the result of this job. The next commits try again.
            log.exception("merge_failed")
            raise
        finally:
            self._lock.release()

    def merge(self) -> None:
        """Merges each table's small fragments. The caller holds `paused`, also for the methods below."""
        merged = False
        for name in TABLES:
            small = self._tables.fragments.small(name)
            if small is not None:
                merged |= self._merge_small(small)
        if merged:
            # Synced here, without the write lock, so that the next commit need not wait for it.
            self._tables.sync(TABLES)
            with self._write_lock.hold("merge"):
                self._log.append("merge", {})

    def _merge_small(self, small: FragmentRows) -> bool:
        with self._write_lock.hold("merge"):
            if not self._tables.fragments.write_merged(small):
                return False
            if small.name != "commits":
                self._tables.fragments.delete_merged(small)
                return True
        # The log can roll back the other tables, but not itself. Its merged rows must therefore be on the disk before the old
        # ones are deleted. Commits do not wait for this sync.
        self._tables.sync(["commits"])
        with self._write_lock.hold("merge"):
            self._tables.fragments.delete_merged(small)
        return True

    def rewrite(self, names: Sequence[str]) -> None:
        """Merges all fragments of each table, concurrently with commits."""
        for name in names:
            self._tables.fragments.rewrite(name)
            with self._write_lock.hold("compact"):
                self._tables.refresh(name)
        if names:
            self._tables.sync(names)
            with self._write_lock.hold("compact"):
                self._log.append("compact", {})

    def prune(self, min_age: timedelta, names: Sequence[str] = TABLES) -> None:
        """Drops versions older than `min_age`, except the version of the last commit."""
        for name in names:
            with self._write_lock.hold("prune"):
                self._tables.refresh(name)
                listing, versions = self._tables.fragments.listing(name), self._log.last.versions
            needed = {versions[name]} if name in versions else set()
            self._tables.prune(name, needed, listing, min_age.total_seconds())

    def compact(self, least: int, min_age: timedelta) -> None:
        """Merges fragments, rewrites tables that still have `least` or more, and drops versions older than `min_age`."""
        with self._lock:
            self.merge()
            for name in TABLES:
                if self._tables.fragments.count(name) >= least:
                    self.rewrite([name])
                # One table after another, so that the disk holds only one table twice.
                self.prune(min_age, [name])

    def reclaim(self, deleted: bool) -> None:
        """Removes the bytes of deleted rows from the disk. `deleted`: whether a purge has just deleted some.

        Reads from the files which rows they still contain, because an earlier purge may have ended before this step.
        """
        names = [name for name in TABLES if name != "commits" and self._tables.fragments.with_deletions(name)]
        self.rewrite(names)
        self.rewrite([name for name in names if self._move_living_rows(name)])
        if deleted or names:
            self.prune(timedelta(0))

    def trim_log(self, horizon: int, least: int) -> int:
        """Deletes log rows of commits before `horizon` if there are `least` or more; returns the number deleted."""
        rows = self._log.obsolete_rows(horizon)
        if len(rows) < least:
            return 0
        with self._write_lock.hold("trim"):
            self._log.forget_before(horizon)
            self._log.append("trim", {}, {"horizon": self._log.horizon}, self._log.last.rowless_costs)
        for start in range(0, len(rows), PURGE_SLICE_ROWS):
            with self._write_lock.hold("trim"):
                self._tables.delete("commits", rows[start : start + PURGE_SLICE_ROWS])
        self._tables.sync(["commits"])
        return len(rows)

    def _move_living_rows(self, name: str) -> bool:
        """Moves the living rows out of files with deleted rows. Lance rewrites such files only if a tenth of their rows is
        deleted."""
        fragments = self._tables.fragments.with_deletions(name)
        for fragment in fragments:
            while (some := self._tables.fragments.some_rows(name, fragment)) is not None:
                with self._write_lock.hold("purge"):
                    if not self._tables.fragments.move(some):
                        return False
        return bool(fragments)

    def is_idle(self) -> bool:
        """Whether no file is being rearranged."""
        return not self._lock.locked()

    def close(self) -> None:
        """Waits for the running merge."""
        self._merger.shutdown(cancel_futures=True)
