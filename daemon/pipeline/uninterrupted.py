"""Lets work end before a cancellation takes effect, so that a cancelled request leaves no thread running."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import TypeVar

T = TypeVar("T")


async def finish_even_if_cancelled(writing: Awaitable[T]) -> T:
    """Waits for a write to end, even if cancelled: a write must not continue in a thread that nothing waits for."""
    task = asyncio.ensure_future(writing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _nothing() -> None:
    """The default for work that cannot be stopped early."""


async def run_to_end(executor: Executor, work: Callable[[], T], give_up: Callable[[], None] = _nothing) -> T:
    """Returns what `work` returns in a thread of `executor`.

    If the caller is cancelled, work that has not begun is dropped. Work that has begun is asked to stop by `give_up` and
    awaited, so that the caller's slot is held as long as the thread runs. A second cancellation ends the waiting.
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
