"""`/v1/export`, `/v1/import`, `/v1/verify`, `/v1/backup`: exports, imports, checks and copies the memory."""

from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import responses
from daemon.api.access.identity import identity_of
from daemon.api.access.rights import Need, needs
from daemon.api.context import ApiContext
from daemon.api.middleware.disconnect import cancel_on_stop
from daemon.api.middleware.peers import request_peer
from daemon.api.openapi import json_body, problems, query_parameters, raw_body, text_response
from daemon.api.request_body import body_chunks, body_media_type
from daemon.api.streaming import LimitedStream
from daemon.api.validation import read_model, read_query_string
from daemon.contract.choices import ExportFormat
from daemon.contract.http.routes import JSON, NDJSON, Route
from daemon.contract.transfer import BackupRequest, BackupResponse, ExportRequest, ImportResponse, VerifyResponse
from daemon.errors import Forbidden

OCTET_STREAM = "application/octet-stream"
OPENIE_RESULTS_SCHEMA = {
    "type": "object",
    "description": "A HippoRAG OpenIE results file, unchanged.",
    "properties": {
        "docs": {
            "type": "array",
            "items": {
                "description": "An object of `passage` (its first line is the title), `extracted_entities` (a list of strings) "
                "and `extracted_triples` (a list of lists of three strings). Whatever is not so is skipped and counted.",
                "example": {
                    "passage": "Quill lamp\nThe Quill lamp was built by Sabine Rell.",
                    "extracted_entities": ["Quill lamp", "Sabine Rell"],
                    "extracted_triples": [["Quill lamp", "was built by", "Sabine Rell"]],
                },
            },
        }
    },
    "required": ["docs"],
}
"""JSON Schema of the body of `POST /v1/import` (`memory.openie.hipporag_file` parses it)."""


def _export_responses() -> dict[int | str, dict[str, Any]]:
    found = text_response(
        NDJSON, "JSON lines, GraphML, or that packed by gzip; in an order that content decides.", streamed=True
    )
    found[200]["content"] |= {
        ExportFormat.GRAPHML.media_type: {"schema": {"type": "string"}},
        ExportFormat.IGRAPH.media_type: {"schema": {"type": "string", "format": "binary"}},
    }
    return found


def add_routes(app: FastAPI, context: ApiContext) -> None:
    limits = context.limits

    @app.get(
        Route.EXPORT,
        response_class=Response,
        responses=problems(422, 503) | _export_responses(),
        openapi_extra=query_parameters(ExportRequest),
        summary="The whole memory as JSON lines, or as a graph",
    )
    @needs(Need.READ)
    async def export(request: Request) -> Response:
        wanted = read_query_string(request, ExportRequest)
        ports = await context.memory(request)
        return LimitedStream(
            context.exports, partial(ports.transfer.export, wanted.format, wanted.scope), wanted.format.media_type
        )

    @app.post(
        Route.IMPORT,
        response_model=ImportResponse,
        responses=problems(400, 408, 413, 415, 422, 503),
        openapi_extra=raw_body(OPENIE_RESULTS_SCHEMA, OCTET_STREAM),
        summary="Import a file of records (Parquet), or a HippoRAG OpenIE results file",
    )
    @needs(Need.ADMIN)
    async def take(request: Request) -> Response:
        body_media_type(request, [JSON, OCTET_STREAM])
        transfer = (await context.memory(request)).transfer
        with context.imports.slot(identity_of(request.scope)):
            taking = transfer.import_openie(body_chunks(request, limits.import_bytes))
            return responses.json_response(await cancel_on_stop(context.stopping, taking))

    @app.post(
        Route.VERIFY,
        response_model=VerifyResponse,
        responses=problems(503),
        summary="Derive the memory again from its tables, and compare",
    )
    @needs(Need.ADMIN)
    async def verify(request: Request) -> Response:
        transfer = (await context.memory(request)).transfer
        with context.maintenance.slot(identity_of(request.scope)):
            return responses.json_response(await transfer.verify())

    @app.post(
        Route.BACKUP,
        response_model=BackupResponse,
        responses=problems(400, 408, 409, 413, 415, 422, 503),
        openapi_extra=json_body(BackupRequest),
        summary="Write the memory as of the last commit to a directory of the daemon's machine",
    )
    @needs(Need.ADMIN)
    async def backup(request: Request) -> Response:
        if request_peer(request.scope).side != "unix":
            raise Forbidden(
                "A backup names a directory of the daemon's machine, so it is accepted on the Unix socket only."
            )
        with context.body_reservation(request) as reservation:
            wanted = await read_model(request, BackupRequest, reservation, limits)
        transfer = (await context.memory(request)).transfer
        with context.maintenance.slot(identity_of(request.scope)):
            return responses.json_response(await transfer.backup(wanted.directory))
