"""Responses: models straight to bytes, errors as problem+json."""

from collections.abc import Mapping

from pydantic import BaseModel
from starlette.responses import Response

from daemon.contract.http.routes import JSON, PROBLEM_JSON
from daemon.errors import RequestError
from daemon.observe import metrics


def json_response(model: BaseModel, status: int = 200) -> Response:
    """Serialised by pydantic-core, without a Python dict on the way."""
    return Response(model.__pydantic_serializer__.to_json(model), status, media_type=JSON)


REFUSAL_STATUSES = (401, 403, 408, 413, 421, 429, 503)
"""Statuses of requests that are turned away for what they are or when they come, not for what they say."""


def problem_response(error: RequestError, headers: Mapping[str, str] | None = None) -> Response:
    if error.status in REFUSAL_STATUSES:
        metrics.REFUSED.labels(error.reason).inc()
    all_headers = {**error.headers, **(headers or {})}
    if error.retry_after_s is not None:
        all_headers["Retry-After"] = str(error.retry_after_s)
    body = error.problem()
    return Response(body.__pydantic_serializer__.to_json(body), error.status, all_headers, media_type=PROBLEM_JSON)
