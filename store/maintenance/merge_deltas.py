"""Folds the logs of the graph's matrices into their bases, and sorts the bands of the sketches, concurrently with commits."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import structlog

from store.index.columns.hashed_rows import HashedRows
from store.index.delta_csr import LiveMatrix
from store.index.live_index import LiveIndex
from store.log.write_lock import WriteLock

log = structlog.get_logger(__name__)

FOLD_SHARE = 0.1
FOLD_MIN_ENTRIES = 50_000
"""A log is folded once it is longer than this and than its share of the base. Folding thus costs O(1) for each added entry."""


def _is_due(matrix: LiveMatrix) -> bool:
    return matrix.log_length >= max(FOLD_MIN_ENTRIES, FOLD_SHARE * matrix.base_entries)


class DeltaMerger:
    """Folds logs in a background thread, one fold at a time."""

    def __init__(
        self, write_lock: WriteLock, current_index: Callable[[], LiveIndex], publish: Callable[[LiveIndex], None]
    ) -> None:
        """`publish` is called, under the write lock, after bases of an index were replaced."""
        self.lock = threading.Lock()
        """Held while bases are replaced. Code that replaces the index or writes a checkpoint holds it too."""
        self._write_lock = write_lock
        self._current_index = current_index
        self._publish = publish
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="fold")
        self._job: Future[None] | None = None

    def fold_when_due(self) -> None:
        """Starts folding long logs in the background, concurrently with commits and queries."""
        index = self._current_index()
        due = [name for name, matrix in index.matrices.items() if _is_due(matrix)]
        due_rows = any(rows.due for rows in index.folded_rows.values())
        if (due or index.sketches.due or due_rows) and (self._job is None or self._job.done()):
            self._job = self._executor.submit(self._fold_in_background, due)

    def _fold_in_background(self, names: Sequence[str]) -> None:
        try:
            self.fold(names)
        except Exception:
            # Nothing reads the result of this job. The next commits try again.
            log.exception("fold_failed")
            raise

    def fold(self, names: Sequence[str]) -> None:
        """Folds the logs of the matrices `names`, however short they are."""
        with self.lock:
            index = self._current_index()
            for name in names:
                with self._write_lock.hold("fold"):
                    view = index.matrices[name].view(index.shape(name))
                folded = view.merged()
                with self._write_lock.hold("fold"):
                    self.swap_in(index, {name: folded}, {name: view.log_length})
            for rows in index.folded_rows.values():
                if rows.due:
                    self.fold_rows(rows)
            if index.sketches.due:
                with self._write_lock.hold("fold"):
                    tail, vectors = index.sketches.tail.frozen(), index.phrase_vectors.view()
                runs = index.sketches.sorted_behind(tail, vectors, index.storage)
                with self._write_lock.hold("fold"):
                    index.sketches.swap_in(runs)

    def fold_rows(self, rows: HashedRows[Any]) -> None:
        """Folds the recent keys of `rows`. The caller holds `lock`."""
        with self._write_lock.hold("fold"):
            began = rows.begin_fold()
        folded = rows.folded(*began)
        with self._write_lock.hold("fold"):
            rows.swap_in(folded)

    def swap_in(self, index: LiveIndex, folded: Mapping[str, Any], lengths: Mapping[str, int]) -> None:
        """Swaps in folded matrices as bases; each contains the first `lengths` entries of its log.

        The caller holds the write lock.
        """
        for name, matrix in folded.items():
            index.matrices[name].swap_in(matrix, lengths[name])
        self._publish(index)

    def close(self) -> None:
        """Waits for the running fold."""
        self._executor.shutdown(cancel_futures=True)
