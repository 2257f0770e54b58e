"""The lock that commits take turns with, which knows how long each job kept commits waiting."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class WriteLock:
    """Whoever holds it is alone with the tables' newest versions and the image. `longest` is what maintenance is judged by."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._longest: dict[str, float] = defaultdict(float)

    @contextmanager
    def held(self, job: str) -> Iterator[None]:
        with self._lock:
            began = time.perf_counter()
            try:
                yield
            finally:
                self._longest[job] = max(self._longest[job], time.perf_counter() - began)

    @property
    def longest(self) -> dict[str, float]:
        """By job: the longest time in seconds that it held the lock at a stretch, since the store was opened."""
        return dict(self._longest)
