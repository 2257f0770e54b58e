"""`GET /openapi.json`: describes requests and responses of all routes, generated from the contract's models."""

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from daemon.contract.answering.ask import AskProgress
from daemon.contract.answering.chat import ChatChunk
from daemon.contract.base import FieldError, Problem
from daemon.contract.evaluation import ComparisonResponse, EvalResponse
from daemon.contract.http.routes import JSON, NDJSON, PROBLEM_JSON
from daemon.contract.status import Event
from daemon.errors import RequestError
from daemon.sources.registry import SOURCE_KINDS

REF = "#/components/schemas/{model}"
OTHER_MODELS: tuple[type[BaseModel], ...] = (
    Problem,
    FieldError,
    Event,
    ComparisonResponse,
    EvalResponse,
    AskProgress,
    ChatChunk,
    *(kind.status for kind in SOURCE_KINDS),
)


RETRY_AFTER: dict[str, Any] = {
    "Retry-After": {
        "description": "Seconds to wait before trying again.",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    }
}
PROBLEM_HEADERS: dict[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"description": "The scheme: Bearer.", "required": True, "schema": {"type": "string"}}},
    429: RETRY_AFTER,
    503: RETRY_AFTER,
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Returns the problems with one of `statuses`, and the problems that any route may return (401, 403 and 421 on TCP
    only)."""
    by_status = _errors_by_status()
    found: dict[int | str, dict[str, Any]] = {}
    for status in sorted({*statuses, 400, 401, 403, 421, 429, 500, 503}):
        lines = [f"{error.title} (`{error.type}`): {(error.__doc__ or '').strip()}" for error in by_status[status]]
        types = {"type": {"enum": [str(error.type) for error in by_status[status]]}, "status": {"const": status}}
        schema = {"allOf": [{"$ref": REF.format(model="Problem")}, {"properties": types}]}
        found[status] = {"description": "\n\n".join(lines), "content": {PROBLEM_JSON: {"schema": schema}}}
        if status in PROBLEM_HEADERS:
            found[status]["headers"] = PROBLEM_HEADERS[status]
    return found


def _errors_by_status() -> dict[int, list[type[RequestError]]]:
    """Returns the subclasses of `RequestError` by HTTP status."""
    by_status: dict[int, list[type[RequestError]]] = {}
    for error in RequestError.__subclasses__():
        by_status.setdefault(error.status, []).append(error)
    return by_status


def json_body(endpoint: Callable[..., Any], model: type[BaseModel], *, lines: bool, required: bool) -> dict[str, Any]:
    """Describes the endpoint's body: JSON of `model`, and also JSON lines if `lines`.

    `document` adds the model to the schemas of an application that has the endpoint.
    """
    endpoint.__dict__["body"] = model
    content: dict[str, Any] = {JSON: {"schema": {"$ref": REF.format(model=model.__name__)}}}
    if lines:
        content[NDJSON] = {"schema": {"type": "string", "description": "One JSON document a line."}}
    return {"requestBody": {"required": required, "content": content}}


def raw_body(schema: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """Describes a JSON body without a model in the contract; `others` are further media types."""
    content = {media_type: {"schema": dict(schema)} for media_type in (JSON, *others)}
    return {"requestBody": {"required": True, "content": content}}


def text_response(media_type: str, description: str, *, streamed: bool = False) -> dict[int | str, dict[str, Any]]:
    """Describes a 200 response that is not a JSON document."""
    found: dict[str, Any] = {"description": description, "content": {media_type: {"schema": {"type": "string"}}}}
    if streamed:
        never = {"description": "no-store", "required": True, "schema": {"type": "string", "const": "no-store"}}
        found["headers"] = {"Cache-Control": never}
    return {200: found}


def query_parameters(model: type[BaseModel], rename: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Describes the query string's parameters, one per field of `model`."""
    schema = model.model_json_schema(mode="validation")
    found = []
    for name, field in schema["properties"].items():
        parameter = (rename or {}).get(name, name)
        inlined = _without_null(_inline(field, schema))
        # An object is passed as JSON in the query string.
        value = {"content": {JSON: {"schema": inlined}}} if inlined.get("type") == "object" else {"schema": inlined}
        found.append({"name": parameter, "in": "query", "required": False, **value})
    return {"parameters": found}


def _without_null(field: dict[str, Any]) -> dict[str, Any]:
    """Returns an optional field's schema without the `null` type: a client omits the parameter instead."""
    choices = [each for each in field.get("anyOf", []) if each.get("type") != "null"]
    default = {"default": field["default"]} if field.get("default") is not None else {}
    whole = {**choices[0], **default} if len(choices) == 1 else field
    return {key: value for key, value in whole.items() if key != "title"}


def _inline(field: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(field, dict):
        if "$ref" in field:
            return schema["$defs"][field["$ref"].rpartition("/")[2]]
        return {key: _inline(value, schema) for key, value in field.items()}
    if isinstance(field, list):
        return [_inline(each, schema) for each in field]
    return field


def document(app: FastAPI, version: str) -> dict[str, Any]:
    """Returns the OpenAPI document of an application, with the models of the contract."""
    found = get_openapi(
        title="hippod",
        version=version,
        summary="A long-term memory for language models.",
        description="Served on a Unix socket, and over TCP with a bearer token if configured.",
        routes=app.routes,
    )
    schemas = found.setdefault("components", {}).setdefault("schemas", {})
    models = {
        model for route in app.routes if (model := getattr(getattr(route, "endpoint", None), "body", None)) is not None
    }
    _, bodies = models_json_schema([(model, "validation") for model in models], ref_template=REF)
    _, others = models_json_schema([(model, "serialization") for model in OTHER_MODELS], ref_template=REF)
    for name, schema in {**bodies["$defs"], **others["$defs"]}.items():
        schemas.setdefault(name, schema)
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    found["security"] = [{}, {"token": []}]
    return found
