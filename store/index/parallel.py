"""Threads for arithmetic that releases the GIL: numpy on large arrays, products of scipy.

A single numpy product runs on one processor (`daemon/__init__.py`). Large products are split into independent parts, so a busy
machine slows them only in proportion.
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
"""With more threads, memory bandwidth is the limit."""


BACKGROUND_NICENESS = 10
"""Niceness of background threads."""


@cache
def processors() -> int:
    """Returns the number of parts to split parallel work into."""
    return min(len(os.sched_getaffinity(0)), MAX_THREADS)


@cache
def threads() -> ThreadPoolExecutor:
    """Returns the thread pool, created at first use because most memories never need it.

    Work in the pool must not wait for other work.
    """
    return ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="side")


def in_parallel(work: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
    """Returns `work(part)` for each of `parts`, in order; in threads if there are several parts."""
    every = list(parts)
    return list(threads().map(work, every)) if len(every) > 1 else [work(part) for part in every]


def in_background(work: Callable[[], None], name: str) -> threading.Thread:
    """Runs `work` in a daemon thread of low priority. The process does not wait for it when it exits."""

    def run() -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BACKGROUND_NICENESS)
        work()

    thread = _BackgroundThread(target=run, name=name, daemon=True)
    thread.start()
    return thread


class _BackgroundThread(threading.Thread):
    """A thread that `in_background` started."""


def wait_for_background() -> None:
    """Waits for all present work of `in_background`. Only tests and measurements need to wait."""
    for thread in threading.enumerate():
        if isinstance(thread, _BackgroundThread):
            thread.join()
