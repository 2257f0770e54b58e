"""What a question is answered with, and what that took."""

from typing import Any

from pydantic import Field

from daemon.contract.model import Response, absent
from daemon.contract.routes import Answerer


class Citation(Response):
    """`id` is the passage's; `points`: those points of a deep answer that it vouches for."""

    rank: int
    document: str
    title: str
    text: str
    id: str = ""
    points: list[str] = Field(default_factory=list, exclude_if=absent)


class Tokens(Response):
    prompt: int
    completion: int


class AskSession(Response):
    """The session that a question went on from: how many `points` it brought (`commit`: when it was last asked), how many
    of them no passage vouches for any more, and how many lost some of theirs."""

    name: str
    commit: int | None = None
    questions: int
    points: int
    forgotten: int = 0
    weakened: int = 0


class AskResponse(Response):
    """`found`: whether the memory holds the answer; `short`: the bare answer; `note`: what a user should know about it.

    All of it is as of `commit`. `steps` are whole records, `stopped` says why there were no more. `calls` counts requests to
    the model, `own_ms` is what hippod spent besides waiting for it. `written` is false where the model could not be had for
    the answer and it is put together from what the steps had found. A deep answer has the rest of its trace beside the
    steps: `version`, `settings`, `earlier` (the memory it began with), `forgotten` (ids of points dropped from that),
    `answered` (the calls that wrote the answer), and the average number of entities of a point at the end.
    """

    question: str
    answer: str
    citations: list[Citation]
    steps: list[dict[str, Any]]
    tokens: Tokens
    took_ms: float
    found: bool = True
    short: str = ""
    note: str | None = Field(default=None, exclude_if=absent)
    answerer: Answerer = Answerer.SINGLE
    commit: int = 0
    calls: int = 1
    own_ms: float | None = Field(default=None, exclude_if=absent)
    stopped: str | None = Field(default=None, exclude_if=absent)
    written: bool = True
    session: AskSession | None = Field(default=None, exclude_if=absent)
    version: int | None = Field(default=None, exclude_if=absent)
    settings: dict[str, Any] | None = Field(default=None, exclude_if=absent)
    earlier: dict[str, Any] | None = Field(default=None, exclude_if=absent)
    forgotten: list[str] | None = Field(default=None, exclude_if=absent)
    answered: list[dict[str, Any]] | None = Field(default=None, exclude_if=absent)
    entities_a_point: float | None = Field(default=None, exclude_if=absent)


class AskProgress(Response):
    """While an answer is streamed: all of its text so far."""

    text: str
