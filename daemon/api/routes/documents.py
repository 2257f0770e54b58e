"""The routes of `/v1/documents` whose requests have several forms: add, remove and show."""

from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request

from daemon.api.endpoints import Routes
from daemon.api.openapi import query_parameters
from daemon.api.request_parsing import BodyReservation, body_media_type, has_body, read_json_lines, read_model
from daemon.contract.base import FieldError
from daemon.contract.documents import (
    AddRequest,
    AddResponse,
    RemoveRequest,
    RemoveResponse,
    ShowRequest,
    ShowResponse,
)
from daemon.contract.http.routes import JSON, NDJSON, Need, Route, served
from daemon.errors import BadRequest, Invalid, NotFound

SHOW_PATH = Route.DOCUMENTS + "/{uri:key}"
KEY_PARAMETER = {
    "name": "uri",
    "in": "path",
    "required": True,
    "description": "A document's URI, a passage's id, a triple as a JSON array, or a phrase; percent-encoded.",
    "schema": {"type": "string"},
}


class _KeyConvertor(Convertor[str]):
    """Matches any text, including line breaks, which file names may contain. The framework's `path` stops at line breaks."""

    regex = r"(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("key", _KeyConvertor())


class DocumentRoutes(Routes):
    @served("POST", Route.DOCUMENTS, Need.WRITE, body=AddRequest, body_lines=True)
    async def add(self, request: Request, reservation: BodyReservation) -> AddResponse:
        """Add documents given in the body; no path is read."""
        added = await self._added(request, reservation)
        return await (await self.context.memory(request)).documents.add(added)

    async def _added(self, request: Request, reservation: BodyReservation) -> list[dict[str, Any]]:
        if body_media_type(request, [JSON, NDJSON]) == JSON:
            return (await read_model(request, AddRequest, reservation, self.context.limits)).documents
        found = await read_json_lines(request, reservation, self.context.limits)
        if not found:
            raise Invalid("The body contains no document.", errors={"": "is empty"})
        return found

    @served(
        "DELETE",
        Route.DOCUMENTS,
        Need.WRITE,
        body=RemoveRequest,
        body_required=False,
        extra=query_parameters(RemoveRequest, rename={"uris": "uri"}),
    )
    async def remove(self, request: Request, reservation: BodyReservation) -> RemoveResponse:
        """Remove documents, named in the body or by ?uri=."""
        uris = _uris_of_query(request)
        if has_body(request.headers) or not uris:
            uris = [*uris, *(await read_model(request, RemoveRequest, reservation, self.context.limits)).uris]
        return await (await self.context.memory(request)).documents.remove(uris)

    @served(
        "GET",
        SHOW_PATH,
        Need.READ,
        400,
        404,
        extra={"parameters": [KEY_PARAMETER, *query_parameters(ShowRequest)["parameters"]]},
    )
    async def show(self, request: Request, parameters: ShowRequest) -> ShowResponse:
        """Show a document, passage, phrase or triple, with its connections."""
        key = _key(request)
        found = await (await self.context.memory(request)).documents.show(key, parameters.limit, parameters.scope)
        if found is None:
            raise NotFound(f"Nothing in the memory is named {key[:500]!r}: no document, passage, phrase or triple.")
        return found


def _uris_of_query(request: Request) -> list[str]:
    for name in request.query_params:
        if name != "uri":
            wrong = FieldError(field=name, message="is not a known parameter", allowed=["uri"])
            raise Invalid(f"The parameter {name!r} is unknown; name documents with uri.", errors=[wrong])
    uris = request.query_params.getlist("uri")
    if "" in uris:
        raise Invalid("A uri is empty.", errors={"uri": "must not be empty"})
    return uris


def _key(request: Request) -> str:
    """Returns the key, strictly decoded once from the raw path, so that different keys stay different."""
    raw: bytes = request.scope["raw_path"]
    try:
        key = unquote_to_bytes(raw.removeprefix(Route.DOCUMENTS.encode() + b"/")).decode()
    except UnicodeDecodeError:
        raise BadRequest("The path is not UTF-8 after percent-decoding; encode the URI's own % as %25.") from None
    if not key:
        raise NotFound(f"Name a document after {Route.DOCUMENTS}/, percent-encoded.")
    return key
