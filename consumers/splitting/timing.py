"""Measures the time that splitting takes in this process. Splitting is a stage of parsing."""

from contextlib import ContextDecorator
from time import perf_counter
from typing import Self


class WorkTimer(ContextDecorator):
    """Adds up the seconds that the decorated functions take. Nested calls count once. For one thread."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._began = 0.0

    def __enter__(self) -> Self:
        self._began = self._began if self._depth else perf_counter()
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self.seconds += perf_counter() - self._began

    def reset(self) -> float:
        """Returns the seconds since the last reset."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds


SPLIT_TIMER = WorkTimer()
