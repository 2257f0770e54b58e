"""`POST /v1/query` and `POST /v1/ask`."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import respond
from daemon.api.checks import read_model
from daemon.api.context import Context
from daemon.api.errors import ApiError, NotConfigured
from daemon.api.openapi import also, body_of, errors
from daemon.api.ports import Asks
from daemon.api.presence import while_present, while_running
from daemon.api.streams import GatedStream, on_one_line
from daemon.contract import (
    EVENT_STREAM,
    AskProgress,
    AskRequest,
    AskResponse,
    QueryRequest,
    QueryResponse,
    Route,
    StepEvent,
)

NO_MODEL = (
    "No language model is configured. Put its server into the configuration: section [llm], with base_url = "
    '"http://localhost:8000/v1" and model = "NAME" (and api_key_env or api_key_file where it wants a key); then restart.'
)
STREAMED = (
    "`step` events (a StepEvent each) for questions of several steps, `text` events (an AskProgress each), then one "
    "`answer` (an AskResponse) or `problem`."
)


async def _messages(asks: Asks, wanted: AskRequest, stopping: asyncio.Event) -> AsyncGenerator[bytes, None]:
    """Server-sent events: `step` for what happens in one, `text` with all of the answer so far, then `answer`, or `problem`,
    which is also how a daemon that stops ends them.

    What fails before the first of them is raised, so that it is answered as any problem is.
    """
    began = False
    try:
        async with aclosing(while_running(asks.stream(wanted), stopping)) as parts:
            async for part in parts:
                began = True
                yield _message(part)
    except ApiError as error:
        if not began:
            raise
        yield f"event: problem\ndata: {on_one_line(error.problem().model_dump_json())}\n\n".encode()


def _message(part: str | StepEvent | AskResponse) -> bytes:
    match part:
        case AskResponse():
            name, data = "answer", part.model_dump_json()
        case StepEvent():
            name, data = "step", part.model_dump_json()
        case _:
            name, data = "text", AskProgress(text=part).model_dump_json()
    return f"event: {name}\ndata: {on_one_line(data)}\n\n".encode()


def add_routes(app: FastAPI, context: Context) -> None:
    limits, ports = context.limits, context.ports

    @app.post(
        Route.QUERY,
        response_model=QueryResponse,
        responses=errors(400, 408, 409, 413, 415, 422, 502, 503),
        openapi_extra=body_of(QueryRequest),
        summary="Find passages",
    )
    async def query(request: Request) -> Response:
        with context.held.share() as share:
            wanted = await read_model(request, QueryRequest, share, limits)
            with context.queries.slot():
                return respond.json(await ports.queries.query(wanted))

    @app.post(
        Route.ASK,
        response_model=AskResponse,
        responses=errors(400, 408, 409, 413, 415, 422, 502, 503) | also(EVENT_STREAM, STREAMED),
        openapi_extra=body_of(AskRequest),
        summary="Answer a question from the memory, with citations",
    )
    async def ask(request: Request) -> Response:
        with context.held.share() as share:
            wanted = await read_model(request, AskRequest, share, limits)
            if ports.asks is None:
                raise NotConfigured(NO_MODEL)
            if EVENT_STREAM in request.headers.get("accept", ""):
                return GatedStream(context.asks, partial(_messages, ports.asks, wanted, context.stopping), EVENT_STREAM)
            with context.asks.slot():
                return respond.json(await while_present(request, context.stopping, ports.asks.ask(wanted)))
