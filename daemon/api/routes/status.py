"""Routes about the daemon itself: status, wait, events, health, metrics."""

import asyncio
from functools import partial
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import responses
from daemon.api.endpoints import Routes
from daemon.api.middleware.disconnect import cancel_on_stop
from daemon.api.openapi import text_response
from daemon.api.responses import LimitedStream, event_messages
from daemon.contract.http.routes import EVENT_STREAM, Need, Route, served
from daemon.contract.status import DaemonState, Health, Status, WaitRequest
from daemon.errors import RequestError
from daemon.observe import metrics

EVENTS = text_response(EVENT_STREAM, "One event a message; its data is an Event as JSON.", streamed=True)
UNREADY: dict[int | str, Any] = {
    503: {"model": Health, "description": "hippod is starting or stopping, or too many connections are open."}
}
METRICS = text_response("text/plain", "Prometheus's text format.")


class StatusRoutes(Routes):
    @served("GET", Route.STATUS, Need.READ)
    async def status(self, request: Request) -> Status:
        """Report the state of the daemon."""
        return await self.context.startup(request).status.status()

    @served("POST", Route.WAIT, Need.READ, 409, body_required=False, releases_body=True)
    async def wait(self, request: Request, body: WaitRequest) -> Status:
        """Wait until everything that the sources contain now is committed or failed."""
        with self.context.slot(self.context.waits, request):
            return await cancel_on_stop(
                self.context.stopping, self.context.startup(request).status.wait(body.timeout_s)
            )

    @served("GET", Route.EVENTS, Need.READ, described=EVENTS)
    async def events(self, request: Request) -> Response:
        """Stream events as they happen (server-sent events)."""
        begin = partial(event_messages, self.context.startup(request).events, self.context.limits.heartbeat_s)
        return LimitedStream(self.context.subscribers, begin, EVENT_STREAM)

    @served("GET", Route.HEALTH, Need.NOTHING, described=UNREADY)
    async def health(self) -> Health | Response:
        """Report whether hippod is ready, by the HTTP status."""
        state = self.context.startup_ports.status.state()
        return responses.json_response(Health(state=state), 200 if state is DaemonState.READY else 503)

    @served("GET", Route.METRICS, Need.ADMIN, described=METRICS)
    async def scrape(self, request: Request) -> Response:
        """Report metrics for Prometheus."""
        try:
            now = await self.context.startup(request).status.status()
        except RequestError:  # not ready; the counters are still useful
            now = None
        # Render in a thread, because it looks up sizes on disk.
        return Response(await asyncio.to_thread(metrics.render, now), headers={"Content-Type": CONTENT_TYPE_LATEST})
