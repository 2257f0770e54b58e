"""Shares of the processors for queries: each running query holds one share. Commits and background work yield while one is
held."""

import threading
import time
from collections.abc import Callable

PAUSE_AFTER_S = 0.002
RECENT_S = 0.1
"""Time for which a query counts as recent. A client that queries continuously pauses for less time between queries."""

PAUSE_RATIO = 9.0
PAUSE_MAX_S = 0.5
"""While queries run, background work sleeps `PAUSE_RATIO` times as long as it worked, at most `PAUSE_MAX_S` at a time."""


class QueryShares:
    """A semaphore that reports whether queries are running. May be used from any thread."""

    def __init__(self, shares: int) -> None:
        self._free = threading.Semaphore(shares)
        self._lock = threading.Lock()
        self._held = 0
        self._released_at = float("-inf")
        """Monotonic time of the last release."""

    def acquire(self) -> None:
        self._free.acquire()
        with self._lock:
            self._held += 1

    def release(self) -> None:
        with self._lock:
            self._held -= 1
            self._released_at = time.monotonic()
        self._free.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def make_pause(self) -> Callable[[], None]:
        """Returns a function for background threads to call every few milliseconds; it sleeps while queries are running.

        Without pauses, a thread that runs Python code blocks the interpreter for queries and occupies a processor.
        """
        worked_from = time.thread_time()

        def pause() -> None:
            nonlocal worked_from
            worked_s = time.thread_time() - worked_from
            if worked_s > PAUSE_AFTER_S:
                if self.held_recently():
                    time.sleep(min(worked_s * PAUSE_RATIO, PAUSE_MAX_S))
                worked_from = time.thread_time()

        return pause

    def held_recently(self) -> bool:
        """Returns whether a share is held, or was held within the last `RECENT_S`."""
        with self._lock:
            return self._held > 0 or time.monotonic() - self._released_at < RECENT_S
