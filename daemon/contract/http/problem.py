"""Errors in the format of RFC 9457 (problem details)."""

from pydantic import Field

from daemon.contract.base import OpenResponse, Response, is_empty


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
