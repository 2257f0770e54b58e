"""Keeps the tables' files few while commits go on: merges small fragments as they come, and deletes old versions.

Each job holds the write lock for one step at a time; what takes longer is done beside commits.
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
"""Younger versions stay: somebody may still read them."""

MERGE_AFTER_COMMITS = 64
"""Commits after which the small fragments that they made of a table are merged: each costs every commit some 0.1 ms."""


class Compactor:
    """Everything that rearranges files. One rearrangement at a time, and none within `paused`."""

    def __init__(self, tables: Tables, log: CommitLog, writing: WriteLock) -> None:
        self._tables = tables
        self._log = log
        self._write_lock = writing
        self._lock = threading.Lock()
        self._merger = ThreadPoolExecutor(1, thread_name_prefix="merge")
        self._merging: Future[None] | None = None
        self._pruned_at = -math.inf
        """When versions were dropped last after a merge, by the monotonic clock."""

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While this lasts no file is rearranged or dropped by anybody else."""
        with self._lock:
            yield

    def merge_when_due(self) -> None:
        """Has the fragments of the last commits merged in the background; commits and queries go on meanwhile."""
        if self._tables.fragments.appended >= MERGE_AFTER_COMMITS and (self._merging is None or self._merging.done()):
            self._merging = self._merger.submit(self._merge_beside)

    def _merge_beside(self) -> None:
        # While files are rearranged already, or must not be, the fragments wait: the next commit asks again.
        if not self._lock.acquire(blocking=False):
            return
        try:
            self.merge()
            if time.monotonic() - self._pruned_at >= PRUNE_MIN_AGE.total_seconds():
                self._pruned_at = time.monotonic()
                self.prune(PRUNE_MIN_AGE)
        except Exception:
            # Nobody waits for what this returns; the next commits ask again.
            log.exception("merge_failed")
            raise
        finally:
            self._lock.release()

    def merge(self) -> None:
        """Merges each table's small fragments. The caller has `paused` the others; so for all below."""
        merged = False
        for name in TABLES:
            small = self._tables.fragments.small(name)
            if small is not None:
                merged |= self._merge_small(small)
        if merged:
            # Flushed here, beside commits: the next commit need not wait for it.
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
        # The other tables are rolled back by the log, and nothing rolls back the log itself: its rows are on the disk before
        # they are deleted where they stood. Commits do not wait for the disk meanwhile.
        self._tables.sync(["commits"])
        with self._write_lock.hold("merge"):
            self._tables.fragments.delete_merged(small)
        return True

    def rewrite(self, names: Sequence[str]) -> None:
        """Merges whole tables, beside commits."""
        for name in names:
            self._tables.fragments.rewrite(name)
            with self._write_lock.hold("compact"):
                self._tables.refresh(name)
        if names:
            self._tables.sync(names)
            with self._write_lock.hold("compact"):
                self._log.append("compact", {})

    def prune(self, min_age: timedelta, names: Sequence[str] = TABLES) -> None:
        """Drops versions older than `min_age`; the last commit's stay."""
        for name in names:
            with self._write_lock.hold("prune"):
                self._tables.refresh(name)
                listing, versions = self._tables.fragments.listing(name), self._log.last.versions
            needed = {versions[name]} if name in versions else set()
            self._tables.prune(name, needed, listing, min_age.total_seconds())

    def compact(self, least: int, min_age: timedelta) -> None:
        """Merges fragments, rewrites tables that have `least` or more even then, and drops versions older than `min_age`."""
        with self._lock:
            self.merge()
            for name in TABLES:
                if self._tables.fragments.count(name) >= least:
                    self.rewrite([name])
                # One after the other: the disk holds a table twice, and never all of them.
                self.prune(min_age, [name])

    def reclaim(self, deleted: bool) -> None:
        """Takes the bytes of deleted rows off the disk; `deleted`: whether a purge has just deleted some.

        An earlier purge may have ended before it came to this: what files still hold is looked up, not remembered.
        """
        names = [name for name in TABLES if name != "commits" and self._tables.fragments.with_deletions(name)]
        self.rewrite(names)
        self.rewrite([name for name in names if self._move_living_rows(name)])
        if deleted or names:
            self.prune(timedelta(0))

    def trim_log(self, horizon: int, least: int) -> int:
        """Takes off the log what it says of commits before `horizon`, where that is `least` rows or more; returns how many."""
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
        """Takes the living rows out of files that hold deleted ones, which Lance rewrites only where those are a tenth."""
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
        """Waits for the merge under way."""
        self._merger.shutdown(cancel_futures=True)
