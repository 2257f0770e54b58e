"""Work that ends early when its client disconnects or the daemon stops."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from daemon.errors import NotReady

T = TypeVar("T")
STOPPING = "The daemon is stopping; ask again once it is back."


async def cancel_on_disconnect(request: Request, stopping: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Returns what `work` returns. Cancels it and raises ClientDisconnect when the client disconnects, NotReady when the
    daemon stops. The request's body must have been read before.
    """
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_disconnected(request))
    stop = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait([task, gone, stop], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if stop.done():
            raise NotReady(STOPPING)
        raise ClientDisconnect
    finally:
        for each in (task, gone, stop):
            each.cancel()
        await asyncio.gather(task, gone, stop, return_exceptions=True)


async def cancel_on_stop(parts: AsyncGenerator[T, None], stopping: asyncio.Event) -> AsyncGenerator[T, None]:
    """Yields what `parts` yields. Closes it and raises NotReady when the daemon stops."""
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


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
