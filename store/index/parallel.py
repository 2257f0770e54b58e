"""Threads for arithmetic that lets go of the interpreter: numpy's on large arrays, scipy's products."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

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
