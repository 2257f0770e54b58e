"""Purges rows that no kept commit needs, and rebuilds the live index after purges have left many unused rows in it.

A purged row keeps its row number in the index, so the index only grows; once a quarter of its rows were purged, no checkpoint
is written. A rebuild loads a new index from the tables as of one commit, concurrently with later commits. The later commits are
then applied to the new index, as when a store is opened, while the next commit waits.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from store.change.load import append_contents, load_index, replay
from store.checkpoint.writer import MAX_PURGED_SHARE, Checkpointing
from store.index.live_index import KINDS
from store.live_memory import LiveMemory
from store.log.commit_history import obsolete_rows
from store.maintenance.compaction import Compactor
from store.maintenance.merge_deltas import DeltaMerger
from store.maintenance.retention import PURGE_SLICE_ROWS, Purge, PurgeSlice

TRIM_MIN_ROWS = 1_000
"""A purge that deletes no other rows deletes the obsolete rows of `commits`, which no query reads, only if there are at least
this many."""

REBUILD_MIN_PURGED_ROWS = 2_000
"""Number of purged rows (some megabytes) above which a rebuild is worth its cost."""


class Erasure:
    """Purges and rebuilds one store. Commits and queries continue meanwhile."""

    def __init__(
        self,
        live: LiveMemory,
        merger: DeltaMerger,
        compactor: Compactor,
        checkpointing: Checkpointing,
    ) -> None:
        self._live = live
        self._commits = live.commits
        self._delta_merger = merger
        self._compactor = compactor
        self._checkpointing = checkpointing
        self.running: Purge | None = None
        """The running purge; None if no purge is running."""

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Prevents the rearrangement and deletion of table files, and the replacement of the index, during the `with` block."""
        with self._delta_merger.lock, self._compactor.lock:
            yield

    def purge(self, keep: timedelta) -> int:
        """See `Store.purge`."""
        before = time.time() - keep.total_seconds()
        self._commits.drop_torn(before)
        horizon = self._commits.commit_before_all_since(before)
        if horizon is None:
            return 0
        with self._compactor.lock:
            count = self._sweep(horizon)
            self._compactor.reclaim()
            self._trim_commits(horizon, 1 if count else TRIM_MIN_ROWS)
        if count:
            self._checkpointing.renew()
        return count

    def _sweep(self, horizon: int) -> int:
        with self._commits.write_lock.hold("purge"):
            with self._commits.changing():
                pass
            purge = self.running = Purge(self._live.index, horizon, self._commits.last.seq)
        try:
            return sum(self._delete(purge, part) for part in purge.slices(self._commits.tables))
        finally:
            self.running = None

    def _delete(self, purge: Purge, part: PurgeSlice) -> int:
        """Deletes the unprotected rows of a slice from the tables and the index in one commit; returns their number."""
        with self._commits.write_lock.hold("purge"):
            part = purge.without_protected(part)
            if self._live.index is not purge.index or not len(part):
                return 0
            costs = self._commits.with_rowless_costs(part.costs())
            with self._commits.raised_horizon(purge.horizon), self._commits.changing() as writer:
                for name, ids in part.ids().items():
                    writer.delete(name, ids)
                self._commits.add_commit(writer, "purge", {"horizon": purge.horizon}, costs)
            if part.contents is not None:
                self._live.forget(part.contents, part.index_rows(), self._commits.last.seq)
            return len(part)

    def _trim_commits(self, horizon: int, min_rows: int) -> None:
        """Deletes the rows of `commits` that only commits before `horizon` need, if there are at least `min_rows` of them."""
        rows = obsolete_rows(self._commits.tables, horizon)
        if len(rows) < min_rows:
            return
        with self._commits.write_lock.hold("trim"):
            facts = {"horizon": max(self._commits.horizon, horizon)}
            with self._commits.changing() as writer:
                self._commits.add_commit(writer, "trim", facts, self._commits.last.rowless_costs)
            self._commits.forget_before(horizon)
        with self._commits.changing("trim") as writer:
            for start in range(0, len(rows), PURGE_SLICE_ROWS):
                writer.delete("commits", rows[start : start + PURGE_SLICE_ROWS])

    def rebuild(self, force: bool) -> bool:
        """See `Store.rebuild_index`."""
        index = self._live.index
        if not force and index.purged_rows <= max(
            REBUILD_MIN_PURGED_ROWS, MAX_PURGED_SHARE * sum(map(index.size, KINDS))
        ):
            return False
        with self.paused():
            with self._commits.write_lock.hold("rebuild"):
                commit, tables = self._commits.last, self._commits.tables.view()
            index = load_index(tables, self._live.index.dim, self._live.index.rule)
            with self._commits.write_lock.hold("rebuild"):
                append_contents(index, self._commits.tables, dict(index.next_id))
                index.sketch_phrases()
                replay(index, self._commits.tables, commit.seq)
                index.keep_numbering_of(self._live.index)
                self._live.replace(index, self._live.snapshot.commit, self._live.snapshot.time)
        return True
