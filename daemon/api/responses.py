"""Responses: models as JSON, errors as problem+json."""

from collections.abc import Mapping

from pydantic import BaseModel
from starlette.responses import Response

from daemon.contract.answering.chat import OpenAiError
from daemon.contract.http.routes import JSON, PROBLEM_JSON, Route
from daemon.errors import RequestError
from daemon.observe import metrics


def json_response(model: BaseModel, status: int = 200) -> Response:
    """Returns the model as a response. pydantic-core serialises it without an intermediate Python dict."""
    return Response(model.__pydantic_serializer__.to_json(model), status, media_type=JSON)


REFUSAL_STATUSES = (401, 403, 408, 413, 421, 429, 503)
"""Statuses of requests that are refused because of their sender, size, speed or time, not because of their content."""


OPENAI_PATHS = (Route.CHAT, Route.MODELS)
"""The paths of OpenAI's protocol. Its clients expect an `error` key in the body of a refusal."""


def problem_response(error: RequestError, headers: Mapping[str, str] | None = None, path: str = "") -> Response:
    """Returns the error as a problem response. If `path` is one of OpenAI's paths, the body also has OpenAI's `error`."""
    if error.status in REFUSAL_STATUSES:
        metrics.REFUSED.labels(error.reason).inc()
    all_headers = {**error.headers, **(headers or {})}
    if error.retry_after_s is not None:
        all_headers["Retry-After"] = str(error.retry_after_s)
    body = error.problem()
    if path in OPENAI_PATHS:
        body = body.model_copy(update=openai_error(error).as_extension())
    return Response(body.__pydantic_serializer__.to_json(body), error.status, all_headers, media_type=PROBLEM_JSON)


def openai_error(error: RequestError) -> OpenAiError:
    """Returns the refusal in OpenAI's format; `code` is the problem's type."""
    details = [f"{each.field}: {each.message}" for each in error.errors]
    # The detail of an invalid request names the first of several fields, or the only one.
    named = bool(details) and error.detail.startswith(details[0])
    message = "; ".join(details if named and len(details) > 1 else [error.detail, *([] if named else details)])
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    return OpenAiError(
        message=message, type=kind, param=error.errors[0].field if error.errors else None, code=error.reason
    )
