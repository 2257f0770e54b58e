"""Threads for arithmetic that lets go of the interpreter: numpy's on large arrays, scipy's products.

A product of numpy's runs on one processor (`daemon/__init__.py`). Where it is large, it is made in parts that wait for
nobody, so that a busy machine slows it in proportion only.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

MAX_THREADS = 4
"""Beyond it, reading from memory is what takes the time."""


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
