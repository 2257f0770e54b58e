"""Work in threads that a cancelled request does not leave behind."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

T = TypeVar("T")


def _nothing() -> None:
    """Work that cannot be ended early."""


async def run_to_end(executor: Executor, work: Callable[[], T], give_up: Callable[[], None] = _nothing) -> T:
    """Returns what `work` returns in a thread of `executor`. If it is cancelled, work that has not begun never does; work that
    has begun is told by `give_up` and waited for, so that the caller's slot is held as long as the thread runs. A second
    cancellation waits no longer."""
    working = executor.submit(work)
    future = asyncio.wrap_future(working)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if not working.cancel() and not working.done():
            give_up()
            await asyncio.wait([future])
        raise
