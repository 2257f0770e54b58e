"""Responses: models straight to bytes, errors as problem+json."""

from collections.abc import Mapping

from pydantic import BaseModel
from starlette.responses import Response

from daemon.contract.answering.chat import OpenAiError
from daemon.contract.http.routes import JSON, PROBLEM_JSON, Route
from daemon.errors import RequestError
from daemon.observe import metrics


def json_response(model: BaseModel, status: int = 200) -> Response:
    """Serialised by pydantic-core, without a Python dict on the way."""
    return Response(model.__pydantic_serializer__.to_json(model), status, media_type=JSON)


REFUSAL_STATUSES = (401, 403, 408, 413, 421, 429, 503)
"""Statuses of requests that are turned away for what they are or when they come, not for what they say."""


OPENAI_PATHS = (Route.CHAT, Route.MODELS)
"""Where OpenAI's clients ask: they look for `error` in what is refused."""


def problem_response(error: RequestError, headers: Mapping[str, str] | None = None, path: str = "") -> Response:
    """`path`: what was asked; on OpenAI's paths the problem also says in their shape what is wrong."""
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
    """The refusal as OpenAI's clients know it; `code` is the problem's type."""
    details = "; ".join(f"{each.field}: {each.message}" for each in error.errors)
    message = f"{error.detail} {details}".strip()
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    return OpenAiError(
        message=message, type=kind, param=error.errors[0].field if error.errors else None, code=error.reason
    )
