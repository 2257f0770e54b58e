"""The two kinds of JSON object: what a client sends is checked to the key, what it receives may gain keys."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Strict, ValidationInfo
from pydantic_core import PydanticCustomError

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")


_TYPED = ("python", "json")
"""Modes of pydantic in which values have types of their own; in the third all are text, as on a command line."""


def _whole(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, bool) or (isinstance(value, str) and info.mode in _TYPED):
        raise PydanticCustomError("whole_number", "must be a whole number")
    return value


def _moment(value: Any) -> Any:
    if isinstance(value, datetime) or (isinstance(value, str) and _MOMENT.match(value)):
        return value
    raise PydanticCustomError("moment", "must be a time such as 2026-11-21T09:00:00Z")


# What a request's fields are made of. pydantic by itself takes true for 1, "5" for 5 and a count of seconds for a time; the
# OpenAPI document promises that a value of another kind is refused.
Flag = Annotated[bool, Strict()]
Number = Annotated[float, Strict()]
WHOLE = BeforeValidator(_whole)
Whole = Annotated[int, WHOLE]
"""JSON has one kind of number: 5.0 is 5. Bounds inside a union stand before `WHOLE`: behind it the JSON Schema loses them."""
Moment = Annotated[AwareDatetime, BeforeValidator(_moment)]


class Request(BaseModel):
    """A key nobody knows is an error: a misspelt option must not be ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Response(BaseModel):
    """Keys that a newer daemon adds are passed over by an older client."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class OpenResponse(BaseModel):
    """As `Response`, but keys beyond the named ones are kept: the contract leaves them open."""

    model_config = ConfigDict(extra="allow", frozen=True)


def absent(value: Any) -> bool:
    """True for what is left out of the JSON instead of standing there as `null` or `[]`."""
    return value is None or value == [] or value == {}


def moment(seconds: float | None) -> datetime | None:
    """Unix seconds as the UTC time that travels in JSON (RFC 3339, `Z`).

    None for one that has no such form: files and messages bear times of any year, by mistake or in other units.
    """
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
