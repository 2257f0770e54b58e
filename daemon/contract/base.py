"""Base classes of requests and responses, the types of their fields, and errors in the format of RFC 9457."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationInfo
from pydantic_core import PydanticCustomError

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")
_TYPED_MODES = ("python", "json")
"""Modes of pydantic in which values have types. In the mode "strings", all values are text, as in a query string."""
# By default, pydantic accepts true for 1, "5" for 5, and a number of seconds for a time. The OpenAPI document says that values
# of other types are refused, so the fields of requests use these types.
JsonBoolean = Annotated[bool, Strict()]
JsonNumber = Annotated[float, Strict()]


def _json_integer(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, bool) or (isinstance(value, str) and info.mode in _TYPED_MODES):
        raise PydanticCustomError("whole_number", "must be a whole number")
    return value


def _timestamp(value: Any) -> Any:
    if isinstance(value, datetime) or (isinstance(value, str) and _TIMESTAMP.match(value)):
        return value
    raise PydanticCustomError("timestamp", "must be a time such as 2026-11-21T09:00:00Z")


JSON_INTEGER = BeforeValidator(_json_integer)
JsonInteger = Annotated[int, JSON_INTEGER]
"""JSON has only one type of number, so 5.0 is accepted as 5. In a union, write bounds before `JSON_INTEGER`, because bounds
after `JSON_INTEGER` are missing in the JSON Schema."""
Timestamp = Annotated[AwareDatetime, BeforeValidator(_timestamp)]
"""A time in RFC 3339 with a time zone."""


class Request(BaseModel):
    """An unknown key is an error, so that a misspelt option is not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Response(BaseModel):
    """An older client ignores the keys that a newer daemon adds."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class OpenResponse(BaseModel):
    """Like `Response`, but keeps unknown keys, because the contract allows any key."""

    model_config = ConfigDict(extra="allow", frozen=True)


def is_empty(value: Any) -> bool:
    """Returns whether `exclude_if` omits the field from the JSON, instead of writing `null`, `[]` or `{}`."""
    return value is None or value == [] or value == {}


def field_path(parts: Iterable[int | str]) -> str:
    """Formats the location of a field, such as ("documents", 3, "text"), as `documents[3].text`."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def utc_time(seconds: float | None) -> datetime | None:
    """Returns Unix seconds as a UTC time for the JSON (RFC 3339, `Z`).

    Returns None if the time is out of range: files and messages may have times of any year, or in another unit by mistake.
    """
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


class FieldError(Response):
    """One error in a request: the field (`documents[3].text`), what is wrong, and the allowed values if they are listed."""

    field: str
    message: str
    allowed: list[str] | None = Field(default=None, exclude_if=is_empty)


class Problem(OpenResponse):
    """The body of every error. `detail` is a sentence for a person: what was wrong, where, what to do."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[FieldError] | None = Field(default=None, exclude_if=is_empty)
    retry_after_s: int | None = Field(default=None, exclude_if=is_empty)
