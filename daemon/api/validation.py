"""Parses requests into models, and turns pydantic's errors into problems: which field, what is wrong, what is allowed."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from daemon.api.request_body import BodyReservation, body_media_type, read_body
from daemon.api.settings import ApiLimits
from daemon.contract.base import FieldError
from daemon.contract.http.routes import JSON, SESSION_PATTERN
from daemon.contract.query import NOT_BLANK
from daemon.contract.transfer import BACKUP_PLACE
from daemon.errors import BadRequest, Invalid, RequestError

Model = TypeVar("Model", bound=BaseModel)
FIELD_ERRORS_MAX = 20
"""Maximum number of wrong fields in one response."""


async def read_model(request: Request, model: type[Model], reservation: BodyReservation, limits: ApiLimits) -> Model:
    """Parses the body as `model`; an empty body is parsed as `{}`."""
    body = await read_body(request, reservation, limits)
    if not body.strip():
        return parse_model(b"{}", model)
    body_media_type(request, [JSON])
    return parse_model(body, model)


def parse_model(body: bytes | bytearray, model: type[Model]) -> Model:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise validation_problem(error.errors(include_url=False, include_input=False), model) from None


def read_query_string(request: Request, model: type[Model]) -> Model:
    """Parses the query string as `model`. Raises Invalid if a parameter is given twice."""
    values: dict[str, str] = {}
    for key, value in request.query_params.multi_items():
        if key in values:
            raise Invalid(f"The parameter {key!r} is given more than once.", errors={key: "is given more than once"})
        values[key] = value
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise validation_problem(error.errors(include_url=False, include_input=False), model) from None


def validation_problem(found: Sequence[Mapping[str, Any]], model: type[BaseModel] | None = None) -> RequestError:
    if found[0]["type"] == "json_invalid":
        return BadRequest(f"The body is not JSON: {found[0]['ctx']['error']}.")
    errors = [_field_error(one, model) for one in found[:FIELD_ERRORS_MAX]]
    first = errors[0]
    more = f" ({len(found) - 1} more in errors)" if len(found) > 1 else ""
    allowed = f" Allowed: {', '.join(first.allowed)}." if first.allowed else ""
    return Invalid(f"{first.field or 'The body'}: {first.message}{more}.{allowed}", errors=errors)


PATTERN_MESSAGES = {
    NOT_BLANK: "must contain more than white space",
    BACKUP_PLACE: "must be an absolute path, s3://bucket/prefix, or file:///folder",
    SESSION_PATTERN: "must be up to 60 letters, digits, underscores, dots and dashes, and not begin with a dot or dash",
}
UNION_FIELDS = ("as_of",)
"""Fields whose values may have several types."""


def _field_error(found: Mapping[str, Any], model: type[BaseModel] | None) -> FieldError:
    loc: tuple[int | str, ...] = tuple(found["loc"])
    if loc and loc[0] in UNION_FIELDS:
        loc = loc[:1]  # pydantic appends the type that did not match; the client knows only the field
    kind = str(found["type"])
    if kind == "extra_forbidden":
        return FieldError(field=field_path(loc), message="is not known here", allowed=_keys(model))
    if kind == "enum":
        return FieldError(field=field_path(loc), message="is not one of those allowed", allowed=_choices(model, loc))
    if kind == "missing":
        return FieldError(field=field_path(loc), message="is required")
    if kind == "string_pattern_mismatch":
        return FieldError(field=field_path(loc), message=PATTERN_MESSAGES[found["ctx"]["pattern"]])
    message = str(found["msg"])
    return FieldError(field=field_path(loc), message=message[:1].lower() + message[1:])


def field_path(loc: Iterable[int | str]) -> str:
    """Formats a location as `documents[3].text`."""
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _keys(model: type[BaseModel] | None) -> list[str] | None:
    return sorted(model.model_fields) if model else None


def _choices(model: type[BaseModel] | None, loc: tuple[int | str, ...]) -> list[str] | None:
    info = model.model_fields.get(str(loc[0])) if model and loc else None
    if info is None:
        return None
    for kind in (info.annotation, *get_args(info.annotation)):
        if isinstance(kind, type) and issubclass(kind, Enum):
            return [str(member.value) for member in kind]
    return None
