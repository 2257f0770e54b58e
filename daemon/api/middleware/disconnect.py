"""Cancels work when its client disconnects or the daemon stops."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daemon.api.request_parsing import has_body
from daemon.errors import NotReady

T = TypeVar("T")
STOPPING = "hippod is stopping; try again after its restart."


async def cancel_on_disconnect(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Calls `app`, and cancels it if the client disconnects before the response is complete.

    Returns only after `app` has ended and released its resources. Watching for a disconnect begins after the body was read,
    or at once if there is no body.
    """
    exchange = _Exchange(scope, receive, send)
    answering = asyncio.ensure_future(app(scope, exchange.receive, exchange.send))
    disconnected = asyncio.create_task(exchange.disconnected())
    try:
        await asyncio.wait([answering, disconnected], return_when=asyncio.FIRST_COMPLETED)
        if answering.done() or exchange.answered:
            await answering
    finally:
        answering.cancel()
        disconnected.cancel()
        await asyncio.gather(answering, disconnected, return_exceptions=True)


class _Exchange:
    """The state of one request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._bodiless_read = has_body(Headers(scope=scope))
        self._body_read = asyncio.Event()
        if not self._bodiless_read:
            self._body_read.set()
        self.answered = False

    async def receive(self) -> Message:
        if not self._bodiless_read:  # synthesised, because `disconnected` consumes the real message
            self._bodiless_read = True
            return {"type": "http.request", "body": b"", "more_body": False}
        message = await self._receive()
        if not message.get("more_body", False):
            self._body_read.set()
        return message

    async def send(self, message: Message) -> None:
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.answered = True

    async def disconnected(self) -> None:
        """Returns when the client has disconnected or has received the whole response."""
        await self._body_read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


async def cancel_on_stop(stopping: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` and returns its result. When the daemon stops, cancels `work` and raises NotReady."""
    task = asyncio.create_task(work)
    stop = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise NotReady(STOPPING)
    finally:
        for each in (task, stop):
            each.cancel()
        await asyncio.gather(task, stop, return_exceptions=True)


async def cancel_stream_on_stop(parts: AsyncGenerator[T, None], stopping: asyncio.Event) -> AsyncGenerator[T, None]:
    """Yields the items of `parts`. When the daemon stops, closes `parts` and raises NotReady."""
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
