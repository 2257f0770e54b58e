"""Threads for calls that wait for Lance or the disk. The pool is permanent, because starting ten threads takes as long as
flushing ten files."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
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
    with meanwhile(work, items):
        pass


@contextmanager
def meanwhile(work: Callable[[Item], object], items: Iterable[Item]) -> Iterator[None]:
    """Runs `work` for all `items` concurrently with the block, and waits for them at its end. An error of the block takes
    precedence."""
    begun = [_threads().submit(work, item) for item in items]
    try:
        yield
    finally:
        wait(begun)
    for each in begun:
        each.result()
