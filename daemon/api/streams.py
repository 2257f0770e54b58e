"""Responses without an end in sight: made as the client reads, and no faster."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, closing

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from daemon.api.gate import Gate
from daemon.api.ports import Events
from daemon.contract import Event

HELLO = b": hippod\n\n"
HEARTBEAT = b":\n\n"


class GatedStream(Response):
    """Streams what `begin()` yields, while a slot of the gate is held.

    The first chunk is made before the response begins, so that an error up to there is answered as a problem.
    """

    def __init__(self, gate: Gate, begin: Callable[[], AsyncGenerator[bytes, None]], media_type: str) -> None:
        super().__init__(media_type=media_type)
        self._gate = gate
        self._begin = begin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._gate.slot():
            async with aclosing(self._begin()) as chunks:
                first = await anext(chunks, b"")
                headers = {"Cache-Control": "no-store"}
                whole = StreamingResponse(_chain(first, chunks), headers=headers, media_type=self.media_type)
                await whole(scope, receive, send)


async def _chain(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Lets everyone else have a turn between two chunks: a source that never waits would otherwise hold the event loop."""
    yield first
    async for chunk in rest:
        await asyncio.sleep(0)
        yield chunk


async def event_messages(events: Events, heartbeat_s: float) -> AsyncGenerator[bytes, None]:
    """Server-sent events until the hub closes. A comment when nothing happened for `heartbeat_s`.

    The subscription exists before the first chunk is out: a client that has the headers misses nothing after them.
    """
    with closing(events.events()) as reader:
        yield HELLO
        while True:
            try:
                async with asyncio.timeout(heartbeat_s):
                    event = await anext(reader)
            except TimeoutError:
                yield HEARTBEAT
            except StopAsyncIteration:
                return
            else:
                yield message(event)


def message(event: Event) -> bytes:
    """`id` (where there is one), `event` and `data` fields; the data is one line of JSON."""
    number = b"" if event.id is None else b"id: %d\n" % event.id
    name = event.event.replace("\r", " ").replace("\n", " ").encode()
    data = on_one_line(event.__pydantic_serializer__.to_json(event).decode()).encode()
    return number + b"event: " + name + b"\ndata: " + data + b"\n\n"


_ENDS = str.maketrans({end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"})


def on_one_line(json: str) -> str:
    """JSON on one line also for readers that end lines wherever Unicode does, as many do: texts hold such characters."""
    return json.translate(_ENDS) if not json.isascii() else json
