"""`POST /v1/ask`: a question, its answer, and what the answer took."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from daemon.contract.base import JSON_INTEGER, JsonBoolean, JsonInteger, JsonNumber, Request, Response, is_empty
from daemon.contract.choices import Answerer, Investigation
from daemon.contract.limits import K_MAX, STEPS_MAX, TIMEOUT_MAX_S
from daemon.contract.query import QueryText
from daemon.contract.scope import Scope
from daemon.contract.sessions import SessionName

_NULL: JsonDict = {"type": "null"}
_TRUE: JsonDict = {"const": True}
_NOT_DEEP: JsonDict = {"deep": {"const": False}, "session": _NULL, "only": _NULL, "update": _TRUE, "merge": _TRUE}
_DEEP: JsonDict = {"properties": {"deep": _TRUE}, "required": ["deep"]}
_ITERATIVE: JsonDict = {"properties": {**_NOT_DEEP, "steps": {"type": "integer"}}, "required": ["steps"]}
_SINGLE: JsonDict = {
    "properties": {**_NOT_DEEP, "steps": _NULL, "max_calls": _NULL, "max_tokens": _NULL, "timeout_s": _NULL}
}


class AskRequest(Request):
    """`steps` alone: retrieve again with each thought as the next query, at most so often. `deep`: HGMem's working memory of
    points, in at most `steps` steps (3 by default).

    For `deep`: `session` continues from the points of that session's earlier questions; `only`, `update` and `merge` are the
    paper's ablations. For both kinds: `max_calls` to the model, `max_tokens` of prompts and answers together, and `timeout_s`
    are budgets. When a budget is spent, the answer is made of what there is, and says so.
    """

    model_config = ConfigDict(json_schema_extra={"anyOf": [_DEEP, _ITERATIVE, _SINGLE]})

    question: QueryText
    deep: JsonBoolean = False
    steps: Annotated[int, Field(ge=1, le=STEPS_MAX), JSON_INTEGER] | None = None
    k: JsonInteger = Field(default=5, ge=1, le=K_MAX)
    scope: Scope | None = None
    session: SessionName | None = None
    only: Investigation | None = None
    update: JsonBoolean = True
    merge: JsonBoolean = True
    max_calls: Annotated[int, Field(ge=1, le=10_000), JSON_INTEGER] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000_000), JSON_INTEGER] | None = None
    timeout_s: Annotated[JsonNumber, Field(gt=0, le=TIMEOUT_MAX_S, allow_inf_nan=False)] | None = None


class Citation(Response):
    """A passage that the answer cites; `id` is the passage's. `points`: the points of a deep answer that it supports."""

    rank: int
    document: str
    title: str
    text: str
    id: str = ""
    points: list[str] = Field(default_factory=list, exclude_if=is_empty)


class Tokens(Response):
    prompt: int
    completion: int


class AskSession(Response):
    """The session that the question continued: the `points` it had at `commit`, when it was last asked; of these, how many no
    passage supports any more (`forgotten`), and how many lost some of their passages (`weakened`)."""

    name: str
    commit: int | None = None
    questions: int
    points: int
    forgotten: int = 0
    weakened: int = 0


class AskResponse(Response):
    """An answer, as of `commit`.

    `found`: the memory holds the answer. `short`: the bare answer. `note`: what a user should know about it. `steps`: the
    whole record of each step; `stopped`: why there were no more. `calls`: requests to the model; `own_ms`: what hippod spent
    besides waiting for it. `written` is false where the model failed and the answer is put together from what the steps
    found.

    A deep answer has the rest of its trace beside the steps: `version`, `settings`, `earlier` (the memory it began with),
    `forgotten` (ids of points dropped from that), `answered` (the calls that wrote the answer), and `entities_a_point`, the
    average number of entities of a point at the end.
    """

    question: str
    answer: str
    citations: list[Citation]
    steps: list[dict[str, Any]]
    tokens: Tokens
    took_ms: float
    found: bool = True
    short: str = ""
    note: str | None = Field(default=None, exclude_if=is_empty)
    answerer: Answerer = Answerer.SINGLE
    commit: int = 0
    calls: int = 1
    own_ms: float | None = Field(default=None, exclude_if=is_empty)
    stopped: str | None = Field(default=None, exclude_if=is_empty)
    written: bool = True
    session: AskSession | None = Field(default=None, exclude_if=is_empty)
    version: int | None = Field(default=None, exclude_if=is_empty)
    settings: dict[str, Any] | None = Field(default=None, exclude_if=is_empty)
    earlier: dict[str, Any] | None = Field(default=None, exclude_if=is_empty)
    forgotten: list[str] | None = Field(default=None, exclude_if=is_empty)
    answered: list[dict[str, Any]] | None = Field(default=None, exclude_if=is_empty)
    entities_a_point: float | None = Field(default=None, exclude_if=is_empty)


class AskProgress(Response):
    """While an answer is streamed: all of its text so far."""

    text: str
