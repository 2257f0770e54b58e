"""Threads for calls that wait for Lance or the disk. The pool is permanent, because starting ten threads would take as long as
flushing ten files."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

Item = TypeVar("Item")

IO_THREADS = 16
"""Maximum number of concurrent calls."""


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(IO_THREADS, thread_name_prefix="io")


def at_once(work: Callable[[Item], object], items: Iterable[Item]) -> None:
    """Runs `work` for all `items` concurrently. Raises the first error after all calls have ended."""
    begun = [_threads().submit(work, item) for item in items]
    wait(begun)
    for each in begun:
        each.result()
