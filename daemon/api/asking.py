"""`POST /v1/query` and `POST /v1/ask`."""

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
from daemon.api.presence import while_present
from daemon.api.streams import GatedStream
from daemon.contract import EVENT_STREAM, AskProgress, AskRequest, AskResponse, QueryRequest, QueryResponse, Route

NO_MODEL = (
    "No language model is configured. Put its server into the configuration: section [llm], with base_url = "
    '"http://localhost:8000/v1" and model = "NAME" (and api_key_env or api_key_file where it wants a key); then restart.'
)


async def _messages(asks: Asks, wanted: AskRequest) -> AsyncGenerator[bytes, None]:
    """Server-sent events: `text` with all of the answer so far, then `answer`, or `problem`.

    What fails before the first text is raised, so that it is answered as any problem is.
    """
    began = False
    try:
        async with aclosing(asks.stream(wanted)) as parts:
            async for part in parts:
                began = True
                name, model = ("answer", part) if isinstance(part, AskResponse) else ("text", AskProgress(text=part))
                yield f"event: {name}\ndata: {model.model_dump_json()}\n\n".encode()
    except ApiError as error:
        if not began:
            raise
        yield f"event: problem\ndata: {error.problem().model_dump_json()}\n\n".encode()


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
        responses=errors(400, 408, 409, 413, 415, 422, 502, 503)
        | also(EVENT_STREAM, "`text` events (an AskProgress each), then one `answer` (an AskResponse) or `problem`."),
        openapi_extra=body_of(AskRequest),
        summary="Answer a question from the memory, with citations",
    )
    async def ask(request: Request) -> Response:
        with context.held.share() as share:
            wanted = await read_model(request, AskRequest, share, limits)
            if ports.asks is None:
                raise NotConfigured(NO_MODEL)
            if EVENT_STREAM in request.headers.get("accept", ""):
                return GatedStream(context.asks, partial(_messages, ports.asks, wanted), EVENT_STREAM)
            with context.asks.slot():
                return respond.json(await while_present(request, context.stopping, ports.asks.ask(wanted)))
