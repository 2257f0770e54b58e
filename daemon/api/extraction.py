"""`POST /v1/reextract`, `POST /v1/backfill` and `GET /v1/extraction`."""

from fastapi import FastAPI
from starlette.responses import Response

from daemon.api import respond
from daemon.api.context import Context
from daemon.api.errors import NotConfigured
from daemon.api.openapi import errors
from daemon.api.ports import Extractions
from daemon.contract import ExtractionResponse, Route


def add_routes(app: FastAPI, context: Context) -> None:
    ports = context.ports

    def port() -> Extractions:
        if ports.extractions is None:
            raise NotConfigured("This daemon extracts nothing.")
        return ports.extractions

    @app.post(
        Route.REEXTRACT,
        response_model=ExtractionResponse,
        responses=errors(409, 503),
        summary="Have every passage read anew that the configured extractor has not read",
    )
    async def reextract() -> Response:
        return respond.json(await port().reextract())

    @app.post(
        Route.BACKFILL,
        response_model=ExtractionResponse,
        responses=errors(409, 503),
        summary="Read everything that waits with the in-process model",
    )
    async def backfill() -> Response:
        return respond.json(await port().backfill())

    @app.get(
        Route.EXTRACTION,
        response_model=ExtractionResponse,
        responses=errors(409, 503),
        summary="How far extraction is, and what it has cost",
    )
    async def extraction() -> Response:
        return respond.json(await port().status())
