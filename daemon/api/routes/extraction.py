"""`POST /v1/reextract`, `POST /v1/backfill` and `GET /v1/extraction`."""

from fastapi import FastAPI
from starlette.responses import Response

from daemon.api import responses
from daemon.api.context import ApiContext
from daemon.api.openapi import problems
from daemon.contract.http.routes import Route
from daemon.contract.status import ExtractionResponse


def add_routes(app: FastAPI, context: ApiContext) -> None:
    memory = context.memory

    @app.post(
        Route.REEXTRACT,
        response_model=ExtractionResponse,
        responses=problems(409, 503),
        summary="Have every passage read anew that the configured extractor has not read",
    )
    async def reextract() -> Response:
        return responses.json_response(await (await memory.ports()).extractions.reextract())

    @app.post(
        Route.BACKFILL,
        response_model=ExtractionResponse,
        responses=problems(409, 503),
        summary="Read everything that waits with the in-process model",
    )
    async def backfill() -> Response:
        return responses.json_response(await (await memory.ports()).extractions.backfill())

    @app.get(
        Route.EXTRACTION,
        response_model=ExtractionResponse,
        responses=problems(409, 503),
        summary="How far extraction is, and what it has cost",
    )
    async def extraction() -> Response:
        return responses.json_response(await (await memory.ports()).extractions.status())
