"""Routes about the daemon itself: status, wait, events, health, metrics."""

import asyncio
from functools import partial
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import responses
from daemon.api.endpoints import Endpoints
from daemon.api.middleware.disconnect import cancel_on_stop
from daemon.api.openapi import text_response
from daemon.api.responses import LimitedStream, event_messages
from daemon.contract.http.routes import EVENT_STREAM, Need, Route
from daemon.contract.status import DaemonState, Health, Status, WaitRequest
from daemon.errors import RequestError
from daemon.observe import metrics


def add_routes(endpoints: Endpoints) -> None:
    context = endpoints.context

    @endpoints.add("GET", Route.STATUS, Need.READ)
    async def status(request: Request) -> Status:
        """State of the daemon."""
        return await context.startup(request).status.status()

    @endpoints.add("POST", Route.WAIT, Need.READ, 409, body_required=False, releases_body=True)
    async def wait(request: Request, wanted: WaitRequest) -> Status:
        """Return once everything that the sources contain now is committed or failed."""
        with context.slot(context.waits, request):
            return await cancel_on_stop(context.stopping, context.startup(request).status.wait(wanted.timeout_s))

    stream = text_response(EVENT_STREAM, "One event a message; its data is an Event as JSON.", streamed=True)

    @endpoints.add("GET", Route.EVENTS, Need.READ, described=stream)
    async def events(request: Request) -> Response:
        """Stream events as they happen (server-sent events)."""
        begin = partial(event_messages, context.startup(request).events, context.limits.heartbeat_s)
        return LimitedStream(context.subscribers, begin, EVENT_STREAM)

    unready: dict[int | str, Any] = {
        503: {"model": Health, "description": "Starting or stopping; or too many connections."}
    }

    @endpoints.add("GET", Route.HEALTH, Need.NOTHING, described=unready)
    async def health() -> Health | Response:
        """200 when ready."""
        state = context.startup_ports.status.state()
        return responses.json_response(Health(state=state), 200 if state is DaemonState.READY else 503)

    exposed = text_response("text/plain", "Prometheus text format.")

    @endpoints.add("GET", Route.METRICS, Need.ADMIN, described=exposed)
    async def scrape(request: Request) -> Response:
        """Counters, histograms and gauges."""
        try:
            now = await context.startup(request).status.status()
        except RequestError:  # not ready; the counters are still useful
            now = None
        # Render in a thread, because it looks up sizes on disk.
        return Response(await asyncio.to_thread(metrics.render, now), headers={"Content-Type": CONTENT_TYPE_LATEST})
