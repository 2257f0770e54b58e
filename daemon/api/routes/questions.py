"""`POST /v1/query` and `POST /v1/ask`."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import responses
from daemon.api.access.identity import identity_of
from daemon.api.access.rights import Need, needs
from daemon.api.context import ApiContext
from daemon.api.middleware.disconnect import cancel_on_stop, cancel_stream_on_stop
from daemon.api.openapi import alternative_response, json_body, problems
from daemon.api.service_protocols import AskPort
from daemon.api.streaming import LimitedStream, sse_message
from daemon.api.validation import read_model
from daemon.contract.answering.ask import AskProgress, AskRequest, AskResponse
from daemon.contract.answering.steps import StepEvent
from daemon.contract.http.routes import EVENT_STREAM, Route
from daemon.contract.query import QueryRequest, QueryResponse
from daemon.errors import NotConfigured, RequestError

NO_MODEL_DETAIL = (
    "No language model is configured. Put its server into the configuration: section [llm], with base_url = "
    '"http://localhost:8000/v1" and model = "NAME" (and api_key_env or api_key_file if it needs a key); then restart.'
)
STREAM_DESCRIPTION = (
    "`step` events (a StepEvent each) for questions of several steps, `text` events (an AskProgress each), then one "
    "`answer` (an AskResponse) or `problem`."
)


async def _messages(asks: AskPort, wanted: AskRequest, stopping: asyncio.Event) -> AsyncGenerator[bytes, None]:
    """Yields server-sent events: `step` events, `text` events with the whole answer so far, then `answer` or `problem`.

    A daemon that stops ends the stream with `problem`. An error before the first event is raised and becomes a problem
    response.
    """
    began = False
    try:
        async with aclosing(cancel_stream_on_stop(asks.stream(wanted), stopping)) as parts:
            async for part in parts:
                began = True
                yield _message(part)
    except RequestError as error:
        if not began:
            raise
        yield sse_message("problem", error.problem())


def _message(part: StepEvent | AskProgress | AskResponse) -> bytes:
    match part:
        case AskResponse():
            return sse_message("answer", part)
        case StepEvent():
            return sse_message("step", part)
        case AskProgress():
            return sse_message("text", part)


def add_routes(app: FastAPI, context: ApiContext) -> None:
    limits = context.limits

    @app.post(
        Route.QUERY,
        response_model=QueryResponse,
        responses=problems(400, 408, 409, 413, 415, 422, 502, 503),
        openapi_extra=json_body(QueryRequest),
        summary="Find passages",
    )
    @needs(Need.READ)
    async def query(request: Request) -> Response:
        with context.body_reservation(request) as reservation:
            wanted = await read_model(request, QueryRequest, reservation, limits)
            if wanted.after:
                with context.waits.slot(identity_of(request.scope)):
                    await (await context.memory(request)).queries.wait_for_positions(wanted)
            async with context.memory_for_query(request, wanted) as ports:
                return responses.json_response(await ports.queries.query(wanted))

    @app.post(
        Route.ASK,
        response_model=AskResponse,
        responses=problems(400, 408, 409, 413, 415, 422, 502, 503)
        | alternative_response(EVENT_STREAM, STREAM_DESCRIPTION),
        openapi_extra=json_body(AskRequest),
        summary="Answer a question from the memory, with citations",
    )
    @needs(Need.READ)
    async def ask(request: Request) -> Response:
        with context.body_reservation(request) as reservation:
            wanted = await read_model(request, AskRequest, reservation, limits)
            ports = await context.memory(request)
            if ports.asks is None:
                raise NotConfigured(NO_MODEL_DETAIL)
            if EVENT_STREAM in request.headers.get("accept", ""):
                return LimitedStream(
                    context.asks, partial(_messages, ports.asks, wanted, context.stopping), EVENT_STREAM
                )
            with context.asks.slot(identity_of(request.scope)):
                return responses.json_response(await cancel_on_stop(context.stopping, ports.asks.ask(wanted)))
