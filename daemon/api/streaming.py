"""Streamed responses: made as the client reads, and no faster. Server-sent events are written here."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, closing, nullcontext

from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from daemon.api.access.identity import identity_of
from daemon.api.middleware.concurrency import ConcurrencyLimit
from daemon.api.service_protocols import Events
from daemon.contract.status import Event

FIRST_COMMENT = b": hippod\n\n"
HEARTBEAT = b":\n\n"


class LimitedStream(Response):
    """Streams what `begin()` yields, in a slot of `limit`; without one where only what is found already is sent.

    The first chunk is made before the response begins, so that an error up to there is answered as a problem.
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
    """Yields to the event loop between two chunks: a source that never waits would block every other request."""
    yield first
    async for chunk in rest:
        await asyncio.sleep(0)
        yield chunk


async def event_messages(events: Events, heartbeat_s: float) -> AsyncGenerator[bytes, None]:
    """Server-sent events until the hub closes. A comment when nothing happened for `heartbeat_s`.

    The subscription exists before the first chunk is out: a client that has the headers misses nothing after them.
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
    """The event under its own name, with its `id` where it has one."""
    name = event.event.replace("\r", " ").replace("\n", " ")
    return sse_message(name, event, event.id)


def sse_message(name: str, data: BaseModel, id: int | None = None) -> bytes:
    """One server-sent event: `id` (where there is one), `event` and `data`, which is the model's JSON on one line."""
    number = "" if id is None else f"id: {id}\n"
    return f"{number}event: {name}\ndata: {_on_one_line(data.model_dump_json())}\n\n".encode()


def data_message(data: BaseModel, key: str = "") -> bytes:
    """A server-sent event without a name, as OpenAI streams them; with `key`, the model's JSON stands below that key."""
    json = _on_one_line(data.model_dump_json())
    return f'data: {{"{key}":{json}}}\n\n'.encode() if key else f"data: {json}\n\n".encode()


_UNICODE_LINE_ENDS = str.maketrans({end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"})


def _on_one_line(json: str) -> str:
    """For readers that end a line wherever Unicode does, as many do: texts of documents hold such characters."""
    return json.translate(_UNICODE_LINE_ENDS) if not json.isascii() else json
