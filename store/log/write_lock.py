"""The lock that makes commits and maintenance take turns, and measures how long each job made commits wait."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class WriteLock:
    """Its holder alone changes the tables and the live index."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._longest_s: dict[str, float] = defaultdict(float)

    @contextmanager
    def hold(self, job: str) -> Iterator[None]:
        with self._lock:
            began = time.perf_counter()
            try:
                yield
            finally:
                self._longest_s[job] = max(self._longest_s[job], time.perf_counter() - began)

    @property
    def longest_s(self) -> dict[str, float]:
        """By job: the longest time in seconds that it held the lock at a stretch, since the store was opened."""
        return dict(self._longest_s)
