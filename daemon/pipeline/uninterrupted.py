"""Lets a write end before a cancellation takes effect."""

import asyncio
from collections.abc import Awaitable
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
