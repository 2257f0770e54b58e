"""`POST /v1/reextract`, `POST /v1/backfill`, `GET /v1/extraction` and `POST /v1/reencode`."""

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import responses
from daemon.api.access.rights import Need, needs
from daemon.api.context import ApiContext
from daemon.api.openapi import json_body, problems
from daemon.api.validation import read_model
from daemon.contract.http.routes import Route
from daemon.contract.status import ExtractionResponse, ReencodeResponse, ReextractRequest


def add_routes(app: FastAPI, context: ApiContext) -> None:
    @app.post(
        Route.REEXTRACT,
        response_model=ExtractionResponse,
        responses=problems(400, 408, 409, 413, 415, 422, 503),
        openapi_extra=json_body(ReextractRequest, required=False),
        summary="Extract triples again from passages that another extractor has read",
    )
    @needs(Need.ADMIN)
    async def reextract(request: Request) -> Response:
        with context.body_reservation(request) as reservation:
            wanted = await read_model(request, ReextractRequest, reservation, context.limits)
        return responses.json_response(await (await context.memory(request)).extractions.reextract(wanted.dry_run))

    @app.post(
        Route.BACKFILL,
        response_model=ExtractionResponse,
        responses=problems(409, 503),
        summary="Read everything that waits with the in-process model",
    )
    @needs(Need.ADMIN)
    async def backfill(request: Request) -> Response:
        return responses.json_response(await (await context.memory(request)).extractions.backfill())

    @app.get(
        Route.EXTRACTION,
        response_model=ExtractionResponse,
        responses=problems(409, 503),
        summary="Progress and cost of extraction",
    )
    @needs(Need.ADMIN)
    async def extraction(request: Request) -> Response:
        return responses.json_response(await (await context.memory(request)).extractions.status())

    @app.post(
        Route.REENCODE,
        response_model=ReencodeResponse,
        responses=problems(409, 502, 503),
        summary="Replace all vectors by those of the configured encoder, and the remaining work",
    )
    @needs(Need.ADMIN)
    async def reencode(request: Request) -> Response:
        return responses.json_response(await (await context.memory(request)).reencoding.reencode())
