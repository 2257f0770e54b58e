"""Lets work end before a cancellation takes effect, so that no thread outlives a cancelled request."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import TypeVar

T = TypeVar("T")


async def finish_even_if_cancelled(writing: Awaitable[T]) -> T:
    """Waits until a write ends, even if cancelled, because no write must continue unobserved in a thread."""
    task = asyncio.ensure_future(writing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _nothing() -> None:
    """Default of `give_up`, for work that cannot be stopped early."""


async def run_to_end(executor: Executor, work: Callable[[], T], give_up: Callable[[], None] = _nothing) -> T:
    """Runs `work` in a thread of `executor` and returns its result.

    If the caller is cancelled, work that has not begun is dropped. For work that has begun, calls `give_up`, which asks it to
    stop, and waits for its end: the caller keeps its slot while the thread runs. A second cancellation ends the wait.
    """
    working = executor.submit(work)
    future = asyncio.wrap_future(working)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if not working.cancel() and not working.done():
            give_up()
            await asyncio.wait([future])
        raise
