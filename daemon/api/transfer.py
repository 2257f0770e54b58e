"""`/v1/export`, `/v1/import`, `/v1/verify`, `/v1/backup`: the whole memory out, checked, or elsewhere; others' triples in."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import respond
from daemon.api.body import chunks, media_type
from daemon.api.checks import query_model, read_model
from daemon.api.context import Context
from daemon.api.errors import Forbidden
from daemon.api.openapi import body_of, errors, query_of, raw_body, text
from daemon.api.peers import peer_in
from daemon.api.presence import while_present
from daemon.api.streams import GatedStream
from daemon.contract import (
    JSON,
    NDJSON,
    BackupRequest,
    BackupResponse,
    ExportFormat,
    ExportRequest,
    ImportResponse,
    Route,
    VerifyResponse,
)

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


def _exported() -> dict[int | str, dict[str, Any]]:
    found = text(
        NDJSON, "JSON lines, GraphML, or that packed by gzip; in an order that content decides.", streamed=True
    )
    found[200]["content"] |= {
        ExportFormat.GRAPHML.media_type: {"schema": {"type": "string"}},
        ExportFormat.IGRAPH.media_type: {"schema": {"type": "string", "format": "binary"}},
    }
    return found


def add_routes(app: FastAPI, context: Context) -> None:
    limits, ports = context.limits, context.ports

    @app.get(
        Route.EXPORT,
        response_class=Response,
        responses=errors(422, 503) | _exported(),
        openapi_extra=query_of(ExportRequest),
        summary="The whole memory as JSON lines, or as a graph",
    )
    async def export(request: Request) -> Response:
        wanted = query_model(request, ExportRequest).format
        return GatedStream(context.exports, partial(ports.transfer.export, wanted), wanted.media_type)

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
            return respond.json(await _imported(request))

    async def _imported(request: Request) -> ImportResponse:
        """A client that goes once it has sent all is of use to nobody, and must not keep its slot until all is indexed."""
        arrived = asyncio.Event()

        async def arriving() -> AsyncIterator[bytes]:
            async for chunk in chunks(request, limits.import_bytes):
                yield chunk
            arrived.set()

        async def outcome() -> ImportResponse:
            return await importing

        importing = asyncio.create_task(ports.transfer.import_openie(arriving()))
        whole = asyncio.create_task(arrived.wait())
        try:
            # Until then the port reads the request, and learns by itself that the client has gone.
            await asyncio.wait([importing, whole], return_when=asyncio.FIRST_COMPLETED)
            return await while_present(request, context.stopping, outcome())
        finally:
            importing.cancel()
            whole.cancel()

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
