"""`/v1/documents`, one document of it, and `POST /v1/retry`."""

from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import FastAPI
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import respond
from daemon.api.body import Share, has_body, media_type, read_lines
from daemon.api.checks import query_model, read_model
from daemon.api.context import Context
from daemon.api.errors import BadRequest, Invalid, NotFound
from daemon.api.openapi import body_of, errors, path_of, query_of
from daemon.contract import (
    JSON,
    NDJSON,
    AddRequest,
    AddResponse,
    DocumentList,
    FieldError,
    ListRequest,
    RemoveRequest,
    RemoveResponse,
    RetryRequest,
    RetryResponse,
    Route,
    ShowRequest,
    ShowResponse,
)

SHOW = Route.DOCUMENTS + "/{uri:key}"
KEY = path_of("uri", "A document's URI, a passage's id, a triple as a JSON array, or a phrase; percent-encoded.")


class _Key(Convertor[str]):
    """Any text, line breaks included: file names hold them, and the framework's `path` stops there."""

    regex = r"(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("key", _Key())


def add_routes(app: FastAPI, context: Context) -> None:
    limits, ports = context.limits, context.ports

    @app.get(
        Route.DOCUMENTS,
        response_model=DocumentList,
        responses=errors(422, 503),
        openapi_extra=query_of(ListRequest),
        summary="Documents and their states",
    )
    async def documents(request: Request) -> Response:
        return respond.json(await ports.documents.documents(query_model(request, ListRequest)))

    @app.post(
        Route.DOCUMENTS,
        response_model=AddResponse,
        responses=errors(400, 408, 413, 415, 422, 503),
        openapi_extra=body_of(AddRequest, lines=True),
        summary="Add documents given in the body; no path is read",
    )
    async def add(request: Request) -> Response:
        with context.held.share() as share:
            return respond.json(await ports.documents.add(await _added(request, share)))

    async def _added(request: Request, share: Share) -> list[dict[str, Any]]:
        if media_type(request, [JSON, NDJSON]) == JSON:
            return (await read_model(request, AddRequest, share, limits)).documents
        found = await read_lines(request, share, limits)
        if not found:
            raise Invalid("The body holds no document.", errors=[FieldError(field="", message="no line")])
        return found

    @app.delete(
        Route.DOCUMENTS,
        response_model=RemoveResponse,
        responses=errors(400, 408, 413, 415, 422, 503),
        openapi_extra=body_of(RemoveRequest, required=False) | query_of(RemoveRequest, rename={"uris": "uri"}),
        summary="Remove documents, named in the body or by ?uri=",
    )
    async def remove(request: Request) -> Response:
        uris = _uris_of_query(request)
        with context.held.share() as share:
            if has_body(request) or not uris:
                uris = [*uris, *(await read_model(request, RemoveRequest, share, limits)).uris]
            return respond.json(await ports.documents.remove(uris))

    @app.get(
        SHOW,
        response_model=ShowResponse,
        responses=errors(400, 404, 422, 503),
        openapi_extra={"parameters": [KEY, *query_of(ShowRequest)["parameters"]]},
        summary="A document, passage, phrase or triple, and what it is connected to",
    )
    async def show(request: Request) -> Response:
        limit = query_model(request, ShowRequest).limit
        key = _key(request)
        found = await ports.documents.show(key, limit)
        if found is None:
            raise NotFound(f"Nothing in the memory is named {key[:500]!r}: no document, passage, phrase or triple.")
        return respond.json(found)

    @app.post(
        Route.RETRY,
        response_model=RetryResponse,
        responses=errors(400, 408, 413, 415, 422, 503),
        openapi_extra=body_of(RetryRequest, required=False),
        summary="Try failed documents again",
    )
    async def retry(request: Request) -> Response:
        with context.held.share() as share:
            return respond.json(
                await ports.documents.retry((await read_model(request, RetryRequest, share, limits)).uris)
            )


def _uris_of_query(request: Request) -> list[str]:
    for name in request.query_params:
        if name != "uri":
            wrong = FieldError(field=name, message="is not known here", allowed=["uri"])
            raise Invalid(f"The parameter {name!r} is not known here; documents are named by uri.", errors=[wrong])
    uris = request.query_params.getlist("uri")
    if "" in uris:
        raise Invalid("A uri is empty.", errors=[FieldError(field="uri", message="must not be empty")])
    return uris


def _key(request: Request) -> str:
    """From the path as it was sent: decoded once, strictly, so that no two keys become one."""
    raw: bytes = request.scope["raw_path"]
    try:
        key = unquote_to_bytes(raw.removeprefix(Route.DOCUMENTS.encode() + b"/")).decode()
    except UnicodeDecodeError:
        raise BadRequest("The path is not UTF-8 after percent-decoding; encode the URI's own % as %25.") from None
    if not key:
        raise NotFound(f"Name a document after {Route.DOCUMENTS}/, percent-encoded.")
    return key
