"""Measures the time that splitting takes in this process, as one stage of parsing."""

from collections.abc import Callable
from functools import wraps
from time import perf_counter
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class WorkTimer:
    """Accumulates seconds until `reset` is called. For one thread."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._inside = False

    def reset(self) -> float:
        seconds, self.seconds = self.seconds, 0.0
        return seconds

    def timed(self, work: Callable[P, T]) -> Callable[P, T]:
        """Returns `work` with its time counted. Time of nested calls with the same timer counts once."""

        @wraps(work)
        def measured(*args: P.args, **kwargs: P.kwargs) -> T:
            if self._inside:
                return work(*args, **kwargs)
            self._inside, began = True, perf_counter()
            try:
                return work(*args, **kwargs)
            finally:
                self._inside = False
                self.seconds += perf_counter() - began

        return measured


SPLIT_TIMER = WorkTimer()
