"""The two kinds of JSON object: what a client sends is checked to the key, what it receives may gain keys."""

from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict


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
    """Unix seconds as the UTC time that travels in JSON (RFC 3339, `Z`)."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
