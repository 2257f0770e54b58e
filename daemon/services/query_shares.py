"""The queries' shares of the processors: who works holds one. Commits leave room while any is held."""

import threading
import time
from collections.abc import Callable

REST_AFTER_S = 0.002
RECENT_S = 0.1
"""A client that asks again and again takes less than this between an answer and its next query."""

REST_RATIO = 9.0
REST_MAX_S = 0.25
"""While queries are at work, background work rests this many times as long as it worked, at most so many seconds at a time."""


class QueryShares:
    """A semaphore that can say whether queries are being answered. For any thread."""

    def __init__(self, shares: int) -> None:
        self._free = threading.Semaphore(shares)
        self._lock = threading.Lock()
        self._held = 0
        self._given_back = float("-inf")
        """When a share was last given back (monotonic)."""

    def acquire(self) -> None:
        self._free.acquire()
        with self._lock:
            self._held += 1

    def release(self) -> None:
        with self._lock:
            self._held -= 1
            self._given_back = time.monotonic()
        self._free.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def rests(self) -> Callable[[], None]:
        """A function for background work in a thread, to be called every few milliseconds: it sleeps while queries are at
        work. A thread that runs Python keeps the interpreter from them, and a core."""
        worked_from = time.thread_time()

        def rest() -> None:
            nonlocal worked_from
            worked_s = time.thread_time() - worked_from
            if worked_s > REST_AFTER_S:
                if self.held_recently():
                    time.sleep(min(worked_s * REST_RATIO, REST_MAX_S))
                worked_from = time.thread_time()

        return rest

    def held_recently(self) -> bool:
        """Whether a share is held, or was within the last `RECENT_S`."""
        with self._lock:
            return self._held > 0 or time.monotonic() - self._given_back < RECENT_S
