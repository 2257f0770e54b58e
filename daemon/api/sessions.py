"""`/v1/sessions`: what deep questions go on from."""

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import respond
from daemon.api.checks import read_model
from daemon.api.context import Context
from daemon.api.errors import NotReady
from daemon.api.openapi import body_of, errors
from daemon.api.ports import SessionKeeping
from daemon.contract import RemoveSessionsRequest, RemoveSessionsResponse, Route, SessionList


def add_routes(app: FastAPI, context: Context) -> None:
    limits, ports = context.limits, context.ports

    def keeping() -> SessionKeeping:
        if ports.sessions is None:
            raise NotReady("Sessions are not there yet; try again in a moment.")
        return ports.sessions

    @app.get(
        Route.SESSIONS, response_model=SessionList, responses=errors(503), summary="Sessions of deep questions, by name"
    )
    async def sessions() -> Response:
        return respond.json(await keeping().sessions())

    @app.delete(
        Route.SESSIONS,
        response_model=RemoveSessionsResponse,
        responses=errors(400, 408, 413, 415, 422, 503),
        openapi_extra=body_of(RemoveSessionsRequest),
        summary="Remove sessions, with their points",
    )
    async def forget_sessions(request: Request) -> Response:
        with context.held.share() as share:
            wanted = await read_model(request, RemoveSessionsRequest, share, limits)
            return respond.json(await keeping().remove_sessions(wanted.names))
