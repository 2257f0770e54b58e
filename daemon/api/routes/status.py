"""Routes about the daemon itself: status, wait, events, health, metrics."""

import asyncio
from functools import partial

from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import responses
from daemon.api.access.identity import identity_of
from daemon.api.access.rights import Need, needs
from daemon.api.context import ApiContext
from daemon.api.middleware.disconnect import cancel_on_stop
from daemon.api.openapi import json_body, problems, text_response
from daemon.api.streaming import LimitedStream, event_messages
from daemon.api.validation import read_model
from daemon.contract.http.routes import EVENT_STREAM, Route
from daemon.contract.status import DaemonState, Health, Status, WaitRequest
from daemon.errors import RequestError
from daemon.observe import metrics


def add_routes(app: FastAPI, context: ApiContext) -> None:
    limits = context.limits

    @app.get(Route.STATUS, response_model=Status, responses=problems(503), summary="State of the daemon")
    @needs(Need.READ)
    async def status(request: Request) -> Response:
        return responses.json_response(await context.startup(request).status.status())

    @app.post(
        Route.WAIT,
        response_model=Status,
        responses=problems(400, 408, 409, 413, 415, 422, 503),
        openapi_extra=json_body(WaitRequest, required=False),
        summary="Return once everything that the sources contain now is committed or failed",
    )
    @needs(Need.READ)
    async def wait(request: Request) -> Response:
        with context.body_reservation(request) as reservation:
            wanted = await read_model(request, WaitRequest, reservation, limits)
        with context.waits.slot(identity_of(request.scope)):
            waiting = context.startup(request).status.wait(wanted.timeout_s)
            return responses.json_response(await cancel_on_stop(context.stopping, waiting))

    @app.get(
        Route.EVENTS,
        response_class=Response,
        responses=problems(503)
        | text_response(EVENT_STREAM, "One event a message; its data is an Event as JSON.", streamed=True),
        summary="What happens, as it happens (server-sent events)",
    )
    @needs(Need.READ)
    async def events(request: Request) -> Response:
        begin = partial(event_messages, context.startup(request).events, limits.heartbeat_s)
        return LimitedStream(context.subscribers, begin, EVENT_STREAM)

    @app.get(
        Route.HEALTH,
        response_model=Health,
        responses=problems()
        | {503: {"model": Health, "description": "Starting or stopping; or too many connections."}},
        summary="200 when ready",
    )
    @needs(Need.NOTHING)
    async def health() -> Response:
        state = context.startup_ports.status.state()
        return responses.json_response(Health(state=state), 200 if state is DaemonState.READY else 503)

    @app.get(
        Route.METRICS,
        response_class=Response,
        responses=problems() | text_response("text/plain", "Prometheus text format."),
        summary="Counters, histograms and gauges",
    )
    @needs(Need.ADMIN)
    async def scrape(request: Request) -> Response:
        try:
            now = await context.startup(request).status.status()
        except RequestError:  # not ready; the counters are still useful
            now = None
        # In a thread, because it looks up sizes on disk.
        return Response(await asyncio.to_thread(metrics.render, now), headers={"Content-Type": CONTENT_TYPE_LATEST})
