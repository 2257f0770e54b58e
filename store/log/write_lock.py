"""The lock that serialises commits and maintenance and measures how long each job delays commits. The lock refuses all writes
once the store is closed or memory and disk may differ."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from store.errors import StoreStopped


class WriteLock:
    """Only the holder of this lock may change the tables and the live index."""

    def __init__(self, store: Path, check: Callable[[], None] = lambda: None) -> None:
        """`check` raises an error if nothing may be written at present. `store`: the folder that error messages name."""
        self._store = store
        self._check = check
        self._stopped: str | None = None
        """Why all writes are refused; None if they are not."""
        self._lock = threading.Lock()
        self._longest_s: dict[str, float] = defaultdict(float)

    @contextmanager
    def hold(self, job: str, *, writes: bool = True) -> Iterator[None]:
        """Holds the lock during the block. Raises StoreStopped or the error of `check`; with `writes` False, raises neither."""
        with self._lock:
            if writes:
                if self._stopped is not None:
                    raise StoreStopped(self._store, self._stopped)
                self._check()
            began = time.perf_counter()
            try:
                yield
            finally:
                self._longest_s[job] = max(self._longest_s[job], time.perf_counter() - began)

    @contextmanager
    def must_succeed(self, failure: str) -> Iterator[None]:
        """If the block fails, memory and disk differ. `hold` then refuses all later writes.

        `failure` describes the failure in the error message. Raises StoreStopped.
        """
        try:
            yield
        except StoreStopped:
            raise
        except BaseException as error:
            why = (
                f"{failure} ({type(error).__name__}: {error}), so memory and disk may differ; restart hippod, which reads the "
                "store again"
            )
            self._stopped = self._stopped or why
            raise StoreStopped(self._store, why) from error

    def close(self) -> None:
        """Refuses all later writes. The caller must hold the lock."""
        self._stopped = "it is closed"

    @property
    def is_held(self) -> bool:
        """Whether a thread holds the lock."""
        return self._lock.locked()

    @property
    def longest_s(self) -> dict[str, float]:
        """For each job, the longest continuous time in seconds for which it has held the lock since the store was opened."""
        return dict(self._longest_s)
