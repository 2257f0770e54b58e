"""`/v1/sessions`: the findings of earlier deep questions, which later ones continue."""

from typing import Annotated

from pydantic import AwareDatetime, Field, StringConstraints

from daemon.contract.base import Request, Response, is_empty
from daemon.contract.limits import SESSION_PATTERN
from daemon.contract.scope import Scope

SessionName = Annotated[str, StringConstraints(pattern=SESSION_PATTERN)]
"""A letter, digit or underscore, and up to 59 of these, dots and dashes: the name is also a file name."""


class SessionQuestion(Response):
    question: str
    answer: str
    commit: int
    time: AwareDatetime


class SessionEntry(Response):
    """A session as of its last question, at `commit`. `expires_at`: when it is removed if nobody uses it. A client that sees
    only some documents gets no answers. `error`: why the session's file cannot be read; the other fields are then empty.
    """

    name: str
    scope: Scope | None = Field(default=None, exclude_if=is_empty)
    """The scope of its questions; null for the whole memory."""
    commit: int = 0
    created_at: AwareDatetime | None = None
    used_at: AwareDatetime | None = None
    expires_at: AwareDatetime | None = None
    points: list[str] = Field(default_factory=list)
    """Descriptions of the points."""
    questions: list[SessionQuestion] = Field(default_factory=list)
    error: str | None = None


class SessionList(Response):
    """Sessions by name."""

    sessions: list[SessionEntry]


class RemoveSessionsRequest(Request):
    names: list[SessionName] = Field(min_length=1)


class RemoveSessionsResponse(Response):
    removed: int
    missing: list[str] = Field(default_factory=list)
