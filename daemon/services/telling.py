"""Work that tells of itself by calls, as something to iterate over."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Ended(Generic[R]):
    """What the work returned; comes last."""

    value: R


async def telling(
    work: Callable[[Callable[[T], None]], Coroutine[Any, Any, R]],
) -> AsyncGenerator[T | Ended[R], None]:
    """All that `work` tells, as it does, then what it returns; raises what it raises. Closing this cancels the work."""
    queue: asyncio.Queue[T | None] = asyncio.Queue()
    task = asyncio.create_task(work(queue.put_nowait))
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (told := await queue.get()) is not None:
            yield told
        yield Ended(task.result())
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
