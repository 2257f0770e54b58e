"""`/v1/documents`, `/v1/documents/{uri}`, `/v1/scopes`, and the POST routes on documents (retry, confirm, remove)."""

from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import FastAPI
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import responses
from daemon.api.access.rights import Need, needs
from daemon.api.context import ApiContext
from daemon.api.openapi import json_body, path_parameter, problems, query_parameters
from daemon.api.request_body import BodyReservation, body_media_type, has_body, read_json_lines
from daemon.api.validation import read_model, read_query_string
from daemon.contract.documents import (
    AddRequest,
    AddResponse,
    ConfirmRequest,
    ConfirmResponse,
    DocumentList,
    ListRequest,
    RemoveRequest,
    RemoveResponse,
    RemoveSourceRequest,
    RemoveSourceResponse,
    RetryRequest,
    RetryResponse,
)
from daemon.contract.http.problem import FieldError
from daemon.contract.http.routes import JSON, NDJSON, Route
from daemon.contract.scope import ScopeList
from daemon.contract.show import ShowRequest, ShowResponse
from daemon.errors import BadRequest, Invalid, NotFound

SHOW_PATH = Route.DOCUMENTS + "/{uri:key}"
KEY_PARAMETER = path_parameter(
    "uri", "A document's URI, a passage's id, a triple as a JSON array, or a phrase; percent-encoded."
)


class _KeyConvertor(Convertor[str]):
    """Matches any text, including line breaks, which file names may contain. The framework's `path` stops at them."""

    regex = r"(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("key", _KeyConvertor())


def add_routes(app: FastAPI, context: ApiContext) -> None:
    limits = context.limits

    @app.get(
        Route.DOCUMENTS,
        response_model=DocumentList,
        responses=problems(422, 503),
        openapi_extra=query_parameters(ListRequest),
        summary="Documents and their states",
    )
    @needs(Need.READ)
    async def documents(request: Request) -> Response:
        wanted = read_query_string(request, ListRequest)
        return responses.json_response(await (await context.memory(request)).documents.documents(wanted))

    @app.post(
        Route.DOCUMENTS,
        response_model=AddResponse,
        responses=problems(400, 408, 413, 415, 422, 503),
        openapi_extra=json_body(AddRequest, lines=True),
        summary="Add documents given in the body; no path is read",
    )
    @needs(Need.WRITE)
    async def add(request: Request) -> Response:
        with context.body_reservation(request) as reservation:
            added = await _added(request, reservation)
            return responses.json_response(await (await context.memory(request)).documents.add(added))

    async def _added(request: Request, reservation: BodyReservation) -> list[dict[str, Any]]:
        if body_media_type(request, [JSON, NDJSON]) == JSON:
            return (await read_model(request, AddRequest, reservation, limits)).documents
        found = await read_json_lines(request, reservation, limits)
        if not found:
            raise Invalid("The body contains no document.", errors=[FieldError(field="", message="no line")])
        return found

    @app.delete(
        Route.DOCUMENTS,
        response_model=RemoveResponse,
        responses=problems(400, 408, 413, 415, 422, 503),
        openapi_extra=json_body(RemoveRequest, required=False)
        | query_parameters(RemoveRequest, rename={"uris": "uri"}),
        summary="Remove documents, named in the body or by ?uri=",
    )
    @needs(Need.WRITE)
    async def remove(request: Request) -> Response:
        uris = _uris_of_query(request)
        with context.body_reservation(request) as reservation:
            if has_body(request) or not uris:
                uris = [*uris, *(await read_model(request, RemoveRequest, reservation, limits)).uris]
            return responses.json_response(await (await context.memory(request)).documents.remove(uris))

    @app.post(
        Route.REMOVE_SOURCE,
        response_model=RemoveSourceResponse,
        responses=problems(400, 404, 408, 409, 413, 415, 422, 503),
        openapi_extra=json_body(RemoveSourceRequest),
        summary="Remove what a source has committed since a time",
    )
    @needs(Need.WRITE)
    async def remove_source(request: Request) -> Response:
        with context.body_reservation(request) as reservation:
            wanted = await read_model(request, RemoveSourceRequest, reservation, limits)
            return responses.json_response(await (await context.memory(request)).documents.remove_source(wanted))

    @app.get(
        SHOW_PATH,
        response_model=ShowResponse,
        responses=problems(400, 404, 422, 503),
        openapi_extra={"parameters": [KEY_PARAMETER, *query_parameters(ShowRequest)["parameters"]]},
        summary="A document, passage, phrase or triple, with its connections",
    )
    @needs(Need.READ)
    async def show(request: Request) -> Response:
        wanted = read_query_string(request, ShowRequest)
        key = _key(request)
        found = await (await context.memory(request)).documents.show(key, wanted.limit, wanted.scope)
        if found is None:
            raise NotFound(f"Nothing in the memory is named {key[:500]!r}: no document, passage, phrase or triple.")
        return responses.json_response(found)

    @app.get(
        Route.SCOPES,
        response_model=ScopeList,
        responses=problems(503),
        summary="What a scope may name: sources, labels and folders",
    )
    @needs(Need.READ)
    async def scopes(request: Request) -> Response:
        return responses.json_response(await (await context.memory(request)).documents.scopes())

    @app.post(
        Route.RETRY,
        response_model=RetryResponse,
        responses=problems(400, 408, 413, 415, 422, 503),
        openapi_extra=json_body(RetryRequest, required=False),
        summary="Try failed documents again",
    )
    @needs(Need.WRITE)
    async def retry(request: Request) -> Response:
        with context.body_reservation(request) as reservation:
            uris = (await read_model(request, RetryRequest, reservation, limits)).uris
            return responses.json_response(await (await context.memory(request)).documents.retry(uris))

    @app.post(
        Route.CONFIRM,
        response_model=ConfirmResponse,
        responses=problems(400, 404, 408, 409, 413, 415, 422, 503),
        openapi_extra=json_body(ConfirmRequest),
        summary="Confirm that the documents which a source did not find are gone",
    )
    @needs(Need.ADMIN)
    async def confirm(request: Request) -> Response:
        with context.body_reservation(request) as reservation:
            wanted = await read_model(request, ConfirmRequest, reservation, limits)
            return responses.json_response(await (await context.memory(request)).documents.confirm(wanted.source))


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
    """Returns the key, strictly decoded once from the raw path, so that different keys stay different."""
    raw: bytes = request.scope["raw_path"]
    try:
        key = unquote_to_bytes(raw.removeprefix(Route.DOCUMENTS.encode() + b"/")).decode()
    except UnicodeDecodeError:
        raise BadRequest("The path is not UTF-8 after percent-decoding; encode the URI's own % as %25.") from None
    if not key:
        raise NotFound(f"Name a document after {Route.DOCUMENTS}/, percent-encoded.")
    return key
