"""Priority of queries: indexing pauses while a query is encoded."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENCE_S = 0.05
"""Maximum length of one pause of indexing, so that an endless stream of queries slows indexing but does not stop it."""
_NICER = 5
"""Added to the niceness of indexing threads. A query then gets three times the processor time of one such thread."""


class QueryPriority:
    """Shared by the threads that encode. Queries never wait; indexing waits between two pieces of its work."""

    def __init__(self, patience_s: float = _PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._queries = 0
        self._clear = threading.Event()
        self._clear.set()

    @contextmanager
    def query_under_way(self) -> Iterator[None]:
        """Pauses indexing while the body runs."""
        with self._lock:
            self._queries += 1
            self._clear.clear()
        try:
            yield
        finally:
            with self._lock:
                self._queries -= 1
                if not self._queries:
                    self._clear.set()

    def yield_to_queries(self) -> None:
        """Returns once no query is being encoded, or after `_PATIENCE_S`; indexing calls it."""
        self._clear.wait(self._patience_s)


def lower_thread_priority() -> None:
    """Lowers the calling thread's priority, if the system has priorities of threads (Linux)."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + _NICER))
