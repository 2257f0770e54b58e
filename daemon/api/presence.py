"""Work that is worth doing only while its client is there and the daemon stays up."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from daemon.api.errors import NotReady

T = TypeVar("T")
STOPPING = "The daemon is stopping; ask again once it is back."


async def while_present(request: Request, stopping: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns. It is cancelled when the client goes (ClientDisconnect) or the daemon stops (NotReady).

    The body must have been read.
    """
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_gone(request))
    stop = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait([task, gone, stop], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if stop.done():
            raise NotReady("The daemon is stopping; ask again once it is back.")
        raise ClientDisconnect
    finally:
        for each in (task, gone, stop):
            each.cancel()
        await asyncio.gather(task, gone, stop, return_exceptions=True)


async def while_running(parts: AsyncGenerator[T, None], stopping: asyncio.Event) -> AsyncGenerator[T, None]:
    """What `parts` yields; NotReady, and an end to its work, when the daemon stops."""
    stop = asyncio.create_task(stopping.wait())
    try:
        async with aclosing(parts):
            while True:
                part = asyncio.ensure_future(anext(parts))
                try:
                    await asyncio.wait([part, stop], return_when=asyncio.FIRST_COMPLETED)
                    if not part.done():
                        raise NotReady(STOPPING)
                    following = part.result()
                except StopAsyncIteration:
                    return
                finally:
                    part.cancel()
                    await asyncio.gather(part, return_exceptions=True)
                yield following
    finally:
        stop.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
