"""Threads for what waits: for Lance, and for the disk. They stay, as starting ten takes as long as flushing ten files."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

Item = TypeVar("Item")

IO_THREADS = 16
"""Calls that wait at once."""


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(IO_THREADS, thread_name_prefix="io")


def at_once(work: Callable[[Item], object], items: Iterable[Item]) -> None:
    """Does `work` for each of `items` side by side. What one of them raises is raised once all have ended."""
    with meanwhile(work, items):
        pass


@contextmanager
def meanwhile(work: Callable[[Item], object], items: Iterable[Item]) -> Iterator[None]:
    """The same while the block runs, which is left once all have ended. What the block raises goes first."""
    begun = [_threads().submit(work, item) for item in items]
    try:
        yield
    finally:
        wait(begun)
    for each in begun:
        each.result()
