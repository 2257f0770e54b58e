"""Folds the changes of the graph's matrices into their bases and sorts the bands of sketches, concurrently with commits."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import structlog

from store.index.live_index import LiveIndex
from store.index.part import Foldable
from store.live_memory import LiveMemory

logger = structlog.get_logger(__name__)


class DeltaMerger:
    """Folds changes in a background thread, one fold at a time."""

    def __init__(self, live: LiveMemory) -> None:
        self.lock = threading.Lock()
        """Must be held while bases are replaced. Code that replaces the index or writes a checkpoint must hold it too."""
        self._live = live
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="fold")
        self._job: Future[None] | None = None

    def fold_when_due(self) -> None:
        """If parts of the index have enough changes, starts folding them in the background, concurrently with commits."""
        if any(part.due for part in self._live.index.foldable()) and (self._job is None or self._job.done()):
            try:
                self._job = self._executor.submit(self._fold_in_background)
            except RuntimeError:  # no thread can be started
                logger.exception("fold_failed")

    def _fold_in_background(self) -> None:
        try:
            self.fold(lambda index: [part for part in index.foldable() if part.due])
        except Exception:
            # The result of this job is never read, so the error is logged here. Later commits try again.
            logger.exception("fold_failed")
            raise

    def fold(self, chosen: Callable[[LiveIndex], Iterable[Foldable]]) -> None:
        """Folds the changes of the `chosen` parts, even if there are few changes."""
        with self.lock:
            index = self._live.index
            for part in chosen(index):
                with self._live.commits.write_lock.hold("fold"):
                    copied = part.copy()
                copied.fold()
                with self._live.commits.write_lock.hold("fold"):
                    self._live.swap(index, partial(part.swap_in_fold, copied))

    def close(self) -> None:
        """Waits until the running fold has ended."""
        self._executor.shutdown(cancel_futures=True)
