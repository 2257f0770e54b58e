"""Streamed responses, produced no faster than the client reads; also formats server-sent events."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, closing, nullcontext

from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from daemon.api.access.identity import identity_of
from daemon.api.event_hub import EventHub
from daemon.api.middleware.concurrency import ConcurrencyLimit
from daemon.contract.status import Event

FIRST_COMMENT = b": hippod\n\n"
HEARTBEAT = b":\n\n"


class LimitedStream(Response):
    """Streams what `begin()` yields while holding a slot of `limit`. `limit` is None if the result exists already.

    The first chunk is produced before the response begins, so an error up to that point becomes a problem response.
    """

    def __init__(
        self, limit: ConcurrencyLimit | None, begin: Callable[[], AsyncGenerator[bytes, None]], media_type: str
    ) -> None:
        super().__init__(media_type=media_type)
        self._limit = limit
        self._begin = begin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with nullcontext() if self._limit is None else self._limit.slot(identity_of(scope)):
            async with aclosing(self._begin()) as chunks:
                first = await anext(chunks, b"")
                headers = {"Cache-Control": "no-store"}
                whole = StreamingResponse(_fairly(first, chunks), headers=headers, media_type=self.media_type)
                await whole(scope, receive, send)


async def _fairly(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yields the chunks, and control to the event loop between them: a source that never waits would block other requests."""
    yield first
    async for chunk in rest:
        await asyncio.sleep(0)
        yield chunk


async def event_messages(events: EventHub, heartbeat_s: float) -> AsyncGenerator[bytes, None]:
    """Yields server-sent events until the hub closes, and a comment whenever nothing happened for `heartbeat_s`.

    The subscription exists before the first chunk is sent, so a client misses no event after it has received the headers.
    """
    with closing(events.events()) as reader:
        yield FIRST_COMMENT
        while True:
            try:
                async with asyncio.timeout(heartbeat_s):
                    event = await anext(reader)
            except TimeoutError:
                yield HEARTBEAT
            except StopAsyncIteration:
                return
            else:
                yield event_message(event)


def event_message(event: Event) -> bytes:
    """Returns the event as a server-sent event with its name, and its `id` if it has one."""
    name = event.event.replace("\r", " ").replace("\n", " ")
    return sse_message(name, event, event.id)


def sse_message(name: str, data: BaseModel, id: int | None = None) -> bytes:
    """Returns a server-sent event: `id` (if given), `event`, and the model's JSON on one line as `data`."""
    number = "" if id is None else f"id: {id}\n"
    return f"{number}event: {name}\ndata: {_on_one_line(data.model_dump_json())}\n\n".encode()


def data_message(data: BaseModel, key: str = "") -> bytes:
    """Returns a server-sent event without a name, as OpenAI streams them. With `key`, the data is an object with that key."""
    json = _on_one_line(data.model_dump_json())
    return f'data: {{"{key}":{json}}}\n\n'.encode() if key else f"data: {json}\n\n".encode()


_UNICODE_LINE_ENDS = str.maketrans({end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"})


def _on_one_line(json: str) -> str:
    """Escapes Unicode line ends in JSON, which documents may contain: many clients end a line at them."""
    return json.translate(_UNICODE_LINE_ENDS) if not json.isascii() else json
