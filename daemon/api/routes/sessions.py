"""`/v1/sessions`: lists and removes the sessions that deep questions continue."""

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import responses
from daemon.api.access.rights import Need, needs
from daemon.api.context import ApiContext
from daemon.api.openapi import json_body, problems
from daemon.api.validation import read_model
from daemon.contract.answering.sessions import RemoveSessionsRequest, RemoveSessionsResponse, SessionList
from daemon.contract.http.routes import Route


def add_routes(app: FastAPI, context: ApiContext) -> None:
    limits = context.limits

    @app.get(
        Route.SESSIONS,
        response_model=SessionList,
        responses=problems(503),
        summary="Sessions of deep questions, by name",
    )
    @needs(Need.READ)
    async def sessions(request: Request) -> Response:
        return responses.json_response(await (await context.memory(request)).sessions.sessions())

    @app.delete(
        Route.SESSIONS,
        response_model=RemoveSessionsResponse,
        responses=problems(400, 408, 413, 415, 422, 503),
        openapi_extra=json_body(RemoveSessionsRequest),
        summary="Remove sessions, with their points",
    )
    @needs(Need.READ)
    async def forget_sessions(request: Request) -> Response:
        with context.body_reservation(request) as reservation:
            wanted = await read_model(request, RemoveSessionsRequest, reservation, limits)
            return responses.json_response(await (await context.memory(request)).sessions.remove_sessions(wanted.names))
