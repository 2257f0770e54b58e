"""A limit on requests of one kind at a time. A client beyond it is refused at once, not kept waiting."""

from collections.abc import Iterator
from contextlib import contextmanager

from daemon.errors import Busy
from daemon.observe import metrics


class ConcurrencyLimit:
    """For one event loop: it has no lock. `what` is the label of its metric, a plural."""

    def __init__(self, limit: int, what: str) -> None:
        self._limit = limit
        self._what = what
        self._inside = 0

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Busy when the limit is reached."""
        if self._inside >= self._limit:
            raise Busy(f"{self._limit} {self._what} are already under way; try again in a moment.", of=self._what)
        self._move(1)
        try:
            yield
        finally:
            self._move(-1)

    def _move(self, by: int) -> None:
        self._inside += by
        metrics.UNDER_WAY.labels(self._what).set(self._inside)
