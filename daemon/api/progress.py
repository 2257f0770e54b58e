"""Where the daemon stands: status, wait, events, health, metrics."""

import asyncio
from functools import partial

from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from daemon import metrics
from daemon.api import respond
from daemon.api.checks import read_model
from daemon.api.context import Context
from daemon.api.errors import ApiError
from daemon.api.openapi import body_of, errors, text
from daemon.api.presence import while_present
from daemon.api.streams import GatedStream, event_messages
from daemon.contract import EVENT_STREAM, DaemonState, Health, Route, Status, WaitRequest


def add_routes(app: FastAPI, context: Context) -> None:
    limits, ports = context.limits, context.ports

    @app.get(Route.STATUS, response_model=Status, responses=errors(503), summary="Where the daemon stands")
    async def status() -> Response:
        return respond.json(await ports.progress.status())

    @app.post(
        Route.WAIT,
        response_model=Status,
        responses=errors(400, 408, 409, 413, 415, 422, 503),
        openapi_extra=body_of(WaitRequest, required=False),
        summary="Return once all that the sources hold now is committed or failed",
    )
    async def wait(request: Request) -> Response:
        with context.held.share() as share:
            wanted = await read_model(request, WaitRequest, share, limits)
        return respond.json(await while_present(request, context.stopping, ports.progress.wait(wanted.timeout_s)))

    @app.get(
        Route.EVENTS,
        response_class=Response,
        responses=errors(503) | text(EVENT_STREAM, "One event a message; its data is an Event as JSON.", streamed=True),
        summary="What happens, as it happens (server-sent events)",
    )
    async def events() -> Response:
        begin = partial(event_messages, ports.events, limits.heartbeat_s)
        return GatedStream(context.subscribers, begin, EVENT_STREAM)

    @app.get(
        Route.HEALTH,
        response_model=Health,
        responses=errors() | {503: {"model": Health, "description": "Starting or stopping; or too many connections."}},
        summary="200 when ready",
    )
    async def health() -> Response:
        state = ports.progress.state()
        return respond.json(Health(state=state), 200 if state is DaemonState.READY else 503)

    @app.get(
        Route.METRICS,
        response_class=Response,
        responses=errors() | text("text/plain", "Prometheus text format."),
        summary="Counters, histograms and gauges",
    )
    async def scrape() -> Response:
        try:
            now = await ports.progress.status()
        except ApiError:  # not ready: the counters are still worth having
            now = None
        # In a thread: sizes on disk are looked up.
        return Response(await asyncio.to_thread(metrics.render, now), headers={"Content-Type": CONTENT_TYPE_LATEST})
