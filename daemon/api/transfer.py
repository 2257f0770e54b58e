"""`/v1/export`, `/v1/import`, `/v1/verify`, `/v1/backup`: the whole memory out, checked, or elsewhere; others' triples in."""

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import respond
from daemon.api.body import chunks, media_type
from daemon.api.checks import read_model
from daemon.api.context import Context
from daemon.api.errors import Forbidden
from daemon.api.openapi import body_of, errors, raw_body, text
from daemon.api.peers import peer_in
from daemon.api.streams import GatedStream
from daemon.contract import JSON, NDJSON, BackupRequest, BackupResponse, ImportResponse, Route, VerifyResponse

BINARY = "application/octet-stream"
RECORDED = {
    "type": "object",
    "description": "A HippoRAG OpenIE results file, as it is.",
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
"""JSON Schema of what `POST /v1/import` takes (`memory.openie.recorded` reads it)."""


def add_routes(app: FastAPI, context: Context) -> None:
    limits, ports = context.limits, context.ports

    @app.get(
        Route.EXPORT,
        response_class=Response,
        responses=errors(503)
        | text(NDJSON, "The whole memory, one JSON object a line, in an order content decides.", streamed=True),
        summary="The whole memory as JSON lines",
    )
    async def export() -> Response:
        return GatedStream(context.exports, ports.transfer.export, NDJSON)

    @app.post(
        Route.IMPORT,
        response_model=ImportResponse,
        responses=errors(400, 408, 413, 415, 422, 503),
        openapi_extra=raw_body(RECORDED, BINARY),
        summary="Take in a HippoRAG OpenIE results file",
    )
    async def take(request: Request) -> Response:
        media_type(request, [JSON, BINARY])
        with context.imports.slot():
            return respond.json(await ports.transfer.import_openie(chunks(request, limits.import_bytes, limits)))

    @app.post(
        Route.VERIFY,
        response_model=VerifyResponse,
        responses=errors(503),
        summary="Derive everything once more from the tables, and compare",
    )
    async def verify() -> Response:
        with context.tending.slot():
            return respond.json(await ports.transfer.verify())

    @app.post(
        Route.BACKUP,
        response_model=BackupResponse,
        responses=errors(400, 408, 409, 413, 415, 422, 503),
        openapi_extra=body_of(BackupRequest),
        summary="Write the memory as of the last commit to a directory of the daemon's machine",
    )
    async def backup(request: Request) -> Response:
        if peer_in(request.scope).side != "unix":
            raise Forbidden(
                "A backup names a directory of the daemon's machine, so it is taken on the Unix socket only."
            )
        with context.held.share() as share:
            wanted = await read_model(request, BackupRequest, share, limits)
        with context.tending.slot():
            return respond.json(await ports.transfer.backup(wanted.directory))
