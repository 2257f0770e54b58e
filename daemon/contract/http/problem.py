"""Errors as they travel: RFC 9457 problem details."""

from pydantic import Field

from daemon.contract.base import OpenResponse, Response, is_empty


class FieldError(Response):
    """One thing wrong with a request: where (`documents[3].text`), what, and what is allowed where that is a list."""

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
