"""Threads for arithmetic that lets go of the interpreter: numpy's on large arrays, scipy's products.

A product of numpy's runs on one processor (`daemon/__init__.py`). Where it is large, it is made in parts that wait for
nobody, so that a busy machine slows it in proportion only.
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
"""Beyond it, reading from memory is what takes the time."""


BACKGROUND_NICENESS = 10
"""Of threads that nobody waits for."""


@cache
def processors() -> int:
    """How many parts to make of what can be worked on side by side."""
    return min(len(os.sched_getaffinity(0)), MAX_THREADS)


@cache
def threads() -> ThreadPoolExecutor:
    """Made with the first large piece of work: most memories never need it. For work that waits for nobody."""
    return ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="side")


def in_parallel(work: Callable[[Part], Result], parts: Iterable[Part]) -> list[Result]:
    """`work` of each of `parts`, in order, on several processors where there are several parts."""
    every = list(parts)
    return list(threads().map(work, every)) if len(every) > 1 else [work(part) for part in every]


def in_background(work: Callable[[], None], name: str) -> threading.Thread:
    """A thread that does `work` where nobody else needs the processor, and that the process does not wait for at its end."""

    def run() -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BACKGROUND_NICENESS)
        work()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
