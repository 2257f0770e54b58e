"""Makes responses: models as JSON, errors as problem+json, and streams that are produced no faster than the client reads."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, closing, nullcontext

from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from daemon.api.access.client import identity_of
from daemon.api.event_hub import EventHub
from daemon.api.middleware.request_limits import ConcurrencyLimit
from daemon.contract.answering.chat import OpenAiError
from daemon.contract.http.routes import JSON, PROBLEM_JSON, Route
from daemon.errors import RequestError
from daemon.observe import metrics

REFUSAL_STATUSES = (401, 403, 408, 413, 421, 429, 503)
"""Statuses of requests that are refused because of their sender, size, speed or time, not because of their content."""
OPENAI_PATHS = (Route.CHAT, Route.MODELS)
"""The paths of OpenAI's protocol. Clients of these paths expect an `error` key in the body of a refusal."""
FIRST_COMMENT = b": hippod\n\n"
HEARTBEAT = b":\n\n"
_UNICODE_LINE_ENDS = str.maketrans({end: f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"})


def json_response(model: BaseModel, status: int = 200) -> Response:
    """Returns the model as a response. pydantic-core serialises it without an intermediate Python dict."""
    return Response(model.__pydantic_serializer__.to_json(model), status, media_type=JSON)


def problem_response(error: RequestError, headers: Mapping[str, str] | None = None, path: str = "") -> Response:
    """Returns the error as a problem response. If `path` is one of OpenAI's paths, the body also has OpenAI's `error`."""
    if error.status in REFUSAL_STATUSES:
        metrics.REFUSED.labels(error.reason).inc()
    all_headers = {**error.headers, **(headers or {})}
    if error.retry_after_s is not None:
        all_headers["Retry-After"] = str(error.retry_after_s)
    body = error.problem()
    if path in OPENAI_PATHS:
        body = body.model_copy(update=openai_error(error).as_extension())
    return Response(body.__pydantic_serializer__.to_json(body), error.status, all_headers, media_type=PROBLEM_JSON)


def openai_error(error: RequestError) -> OpenAiError:
    """Returns the refusal in OpenAI's format; `code` is the problem's type."""
    details = [f"{each.field}: {each.message}" for each in error.errors]
    # The detail of an invalid request may begin with its first field error.
    named = bool(details) and error.detail.startswith(details[0])
    message = "; ".join(details if named and len(details) > 1 else [error.detail, *([] if named else details)])
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    return OpenAiError(
        message=message, type=kind, param=error.errors[0].field if error.errors else None, code=error.reason
    )


class LimitedStream(Response):
    """Streams the items of `begin()` while holding a slot of `limit`. `limit` is None if the result exists already.

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
    """Yields the chunks, with control to the event loop between them: a source that never waits would block other requests."""
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
                yield sse_message(event.event.replace("\r", " ").replace("\n", " "), event, event.id)


def sse_message(name: str, data: BaseModel, id: int | None = None) -> bytes:
    """Returns a server-sent event: `id` (if given), `event`, and the model's JSON on one line as `data`."""
    number = "" if id is None else f"id: {id}\n"
    return f"{number}event: {name}\ndata: {_on_one_line(data.model_dump_json())}\n\n".encode()


def data_message(data: BaseModel, key: str = "") -> bytes:
    """Returns a server-sent event without a name, as OpenAI streams them. With `key`, the data is an object with that key."""
    json = _on_one_line(data.model_dump_json())
    return f'data: {{"{key}":{json}}}\n\n'.encode() if key else f"data: {json}\n\n".encode()


def _on_one_line(json: str) -> str:
    """Escapes Unicode line ends, which text from documents may contain: many clients end a line at them."""
    return json.translate(_UNICODE_LINE_ENDS) if not json.isascii() else json
