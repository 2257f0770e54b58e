"""`POST /v1/graph`."""

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import respond
from daemon.api.checks import read_model
from daemon.api.context import Context
from daemon.api.errors import NotFound
from daemon.api.openapi import body_of, errors
from daemon.contract import GraphRequest, GraphResponse, Route


def add_routes(app: FastAPI, context: Context) -> None:
    limits, graphs = context.limits, context.ports.graphs
    if graphs is None:
        return

    @app.post(
        Route.GRAPH,
        response_model=GraphResponse,
        responses=errors(400, 404, 408, 409, 413, 415, 422, 503),
        openapi_extra=body_of(GraphRequest),
        summary="The graph around a query, or around one phrase or passage",
    )
    async def graph(request: Request) -> Response:
        with context.held.share() as share:
            wanted = await read_model(request, GraphRequest, share, limits)
            with context.queries.slot():
                found = await graphs.graph(wanted)
        if found is None:
            name = wanted.phrase if wanted.phrase is not None else wanted.passage or ""
            kind = "phrase" if wanted.phrase is not None else "passage with the id"
            raise NotFound(f"The memory has no {kind} {name[:500]!r}.")
        return respond.json(found)
