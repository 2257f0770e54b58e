"""`/v1/export`, `/v1/import`, `/v1/verify`, `/v1/backup`: exports, imports, checks and copies the memory."""

from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from daemon.api.endpoints import BODY_PROBLEMS, Routes
from daemon.api.middleware.disconnect import cancel_on_stop
from daemon.api.middleware.peers import request_peer
from daemon.api.openapi import raw_body, text_response
from daemon.api.ports import MemoryPorts
from daemon.api.request_parsing import body_chunks, body_media_type
from daemon.api.responses import LimitedStream
from daemon.contract.choices import ExportFormat
from daemon.contract.http.routes import JSON, NDJSON, Need, Route, served
from daemon.contract.transfer import (
    BackupRequest,
    BackupResponse,
    ExportRequest,
    ImportResponse,
    VerifyRequest,
    VerifyResponse,
)
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
                "and `extracted_triples` (a list of lists of three strings). Anything else is skipped and counted.",
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
        NDJSON, "JSON lines, GraphML, or gzipped GraphML, in an order that depends on the content alone.", streamed=True
    )
    found[200]["content"] |= {
        ExportFormat.GRAPHML.media_type: {"schema": {"type": "string"}},
        ExportFormat.IGRAPH.media_type: {"schema": {"type": "string", "format": "binary"}},
    }
    return found


class TransferRoutes(Routes):
    @served("GET", Route.EXPORT, Need.READ, audited=True, described=_export_responses())
    async def export(self, ports: MemoryPorts, parameters: ExportRequest) -> Response:
        """Export the memory as JSON lines, or as a graph."""
        begin = partial(ports.transfer.export, parameters.format, parameters.scope)
        return LimitedStream(self.context.exports, begin, parameters.format.media_type)

    @served("POST", Route.IMPORT, Need.ADMIN, *BODY_PROBLEMS, extra=raw_body(OPENIE_RESULTS_SCHEMA, OCTET_STREAM))
    async def take(self, request: Request) -> ImportResponse:
        """Import a file of records (Parquet), or a HippoRAG OpenIE results file."""
        body_media_type(request, [JSON, OCTET_STREAM])
        transfer = (await self.context.memory(request)).transfer
        with self.context.slot(self.context.imports, request):
            taking = transfer.import_openie(body_chunks(request, self.context.limits.import_bytes))
            return await cancel_on_stop(self.context.stopping, taking)

    @served("POST", Route.VERIFY, Need.ADMIN, body_required=False, releases_body=True)
    async def verify(self, request: Request, ports: MemoryPorts, body: VerifyRequest) -> VerifyResponse:
        """Derive the memory again from its tables, and compare the two."""
        with self.context.slot(self.context.maintenance, request):
            return await ports.transfer.verify(body)

    @served("POST", Route.BACKUP, Need.ADMIN, 409, releases_body=True)
    async def backup(self, request: Request, ports: MemoryPorts, body: BackupRequest) -> BackupResponse:
        """Back up the memory at the last commit to a directory of the daemon's machine, or to a URL."""
        if request_peer(request.scope).side != "unix":
            raise Forbidden(
                "A backup names a directory of the daemon's machine, so it is accepted on the Unix socket only."
            )
        with self.context.slot(self.context.maintenance, request):
            return await ports.transfer.backup(body.directory)
