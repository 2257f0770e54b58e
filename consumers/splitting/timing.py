"""How long splitting took in this process, for whoever measures the stages of reading."""

from collections.abc import Callable
from functools import wraps
from time import perf_counter
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class WorkTimer:
    """Seconds since `take` was last called. One thread."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._inside = False

    def reset(self) -> float:
        seconds, self.seconds = self.seconds, 0.0
        return seconds

    def timed(self, work: Callable[P, T]) -> Callable[P, T]:
        """`work`, its time counted; what it calls itself of the same kind counts once."""

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
