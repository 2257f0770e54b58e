"""The two kinds of JSON object, and the types of their fields.

A request is checked to the last key. A response may gain keys: an older client ignores what a newer daemon adds.
"""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Strict, ValidationInfo
from pydantic_core import PydanticCustomError

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")
_TYPED_MODES = ("python", "json")
"""Modes of pydantic in which values have types of their own. In the third, "strings", all are text, as in a query string."""


def _json_integer(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, bool) or (isinstance(value, str) and info.mode in _TYPED_MODES):
        raise PydanticCustomError("whole_number", "must be a whole number")
    return value


def _timestamp(value: Any) -> Any:
    if isinstance(value, datetime) or (isinstance(value, str) and _TIMESTAMP.match(value)):
        return value
    raise PydanticCustomError("timestamp", "must be a time such as 2026-11-21T09:00:00Z")


# pydantic by itself takes true for 1, "5" for 5 and a count of seconds for a time. The OpenAPI document promises that a
# value of another type is refused, so requests are made of these types.
JsonBoolean = Annotated[bool, Strict()]
JsonNumber = Annotated[float, Strict()]
JSON_INTEGER = BeforeValidator(_json_integer)
JsonInteger = Annotated[int, JSON_INTEGER]
"""JSON has one type of number: 5.0 is 5. In a union, write the bounds before `JSON_INTEGER`: after it, the JSON Schema loses
them."""
Timestamp = Annotated[AwareDatetime, BeforeValidator(_timestamp)]
"""RFC 3339, with a time zone."""


class Request(BaseModel):
    """An unknown key is an error: a misspelt option must not be ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Response(BaseModel):
    """An older client ignores the keys that a newer daemon adds."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class OpenResponse(BaseModel):
    """As `Response`, but keeps the keys that it does not name: the contract leaves them open."""

    model_config = ConfigDict(extra="allow", frozen=True)


def is_empty(value: Any) -> bool:
    """For `exclude_if`: the JSON leaves such a field out, instead of showing `null`, `[]` or `{}`."""
    return value is None or value == [] or value == {}


def utc_time(seconds: float | None) -> datetime | None:
    """Unix seconds as the UTC time that the JSON shows (RFC 3339, `Z`).

    None where there is no such time: by mistake, or in another unit, files and messages carry times of any year.
    """
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
