"""The lock that serialises commits and maintenance, and measures how long each job delays commits."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class WriteLock:
    """Only the holder of this lock may change the tables and the live index."""

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        """`check` raises if nothing may be written now."""
        self._check = check
        self._lock = threading.Lock()
        self._longest_s: dict[str, float] = defaultdict(float)

    @contextmanager
    def hold(self, job: str, *, writes: bool = True) -> Iterator[None]:
        """Holds the lock during the block. Raises the error of `check`, unless `writes` is False."""
        with self._lock:
            if writes:
                self._check()
            began = time.perf_counter()
            try:
                yield
            finally:
                self._longest_s[job] = max(self._longest_s[job], time.perf_counter() - began)

    @property
    def longest_s(self) -> dict[str, float]:
        """By job: the longest continuous time in seconds for which it held the lock, since the store was opened."""
        return dict(self._longest_s)
