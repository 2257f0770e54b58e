"""Threads for arithmetic that releases the GIL: numpy on large arrays, and scipy's matrix products.

A single numpy product runs on one processor (`daemon/__init__.py`). Large products are split into independent parts, so if some
processors are busy, the product slows down only in proportion.
"""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

MAX_THREADS = 4
"""Maximum number of threads; with more, memory bandwidth is the limit."""


BACKGROUND_NICENESS = 10
"""Niceness (Unix priority) of background threads."""


@cache
def processors() -> int:
    """Returns the number of parts into which parallel work is split."""
    return min(len(os.sched_getaffinity(0)), MAX_THREADS)


@cache
def threads() -> ThreadPoolExecutor:
    """Returns the thread pool, which is created on first use because most memories never need it.

    Work in the pool must not wait for other work in the pool.
    """
    return ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="side")


def in_parallel(work: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
    """Returns the results of `work` for `parts`, in their order. Uses threads if there are several parts."""
    every = list(parts)
    return list(threads().map(work, every)) if len(every) > 1 else [work(part) for part in every]


def in_background(work: Callable[[], None], name: str) -> threading.Thread:
    """Runs `work` in a daemon thread of low priority. The process does not wait for this thread when it exits."""

    def run() -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BACKGROUND_NICENESS)
        work()

    thread = _BackgroundThread(target=run, name=name, daemon=True)
    thread.start()
    return thread


class _BackgroundThread(threading.Thread):
    """A thread started by `in_background`."""


def wait_for_background() -> None:
    """Waits until all threads that `in_background` has started so far have ended. Only tests and measurements need to wait."""
    for thread in threading.enumerate():
        if isinstance(thread, _BackgroundThread):
            thread.join()
