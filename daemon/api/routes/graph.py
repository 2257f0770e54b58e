"""`POST /v1/graph`."""

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import responses
from daemon.api.access.rights import Need, needs
from daemon.api.context import ApiContext
from daemon.api.openapi import json_body, problems
from daemon.api.validation import read_model
from daemon.contract.graph import GraphRequest, GraphResponse
from daemon.contract.http.routes import Route
from daemon.errors import NotFound


def add_routes(app: FastAPI, context: ApiContext) -> None:
    limits = context.limits

    @app.post(
        Route.GRAPH,
        response_model=GraphResponse,
        responses=problems(400, 404, 408, 409, 413, 415, 422, 503),
        openapi_extra=json_body(GraphRequest),
        summary="The graph around a query, or around one phrase or passage",
    )
    @needs(Need.READ)
    async def graph(request: Request) -> Response:
        with context.body_reservation(request) as reservation:
            wanted = await read_model(request, GraphRequest, reservation, limits)
            async with context.memory_for_query(request, wanted) as ports:
                found = await ports.graphs.graph(wanted)
        if found is None:
            name = wanted.phrase if wanted.phrase is not None else wanted.passage or ""
            kind = "phrase" if wanted.phrase is not None else "passage with the id"
            raise NotFound(f"The memory has no {kind} {name[:500]!r}.")
        return responses.json_response(found)
