"""`POST /v1/ask`: a question, its answer, and the answer's cost.

`/v1/sessions` lists the findings of earlier deep questions, which later ones continue.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, ConfigDict, Field, StringConstraints
from pydantic.config import JsonDict

from daemon.contract.base import JSON_INTEGER, JsonBoolean, JsonInteger, JsonNumber, Request, Response, is_empty
from daemon.contract.choices import BUDGETS, DEEP_ONLY, NO_RETRIEVAL, Answerer, Filter, Investigation
from daemon.contract.http.routes import K_MAX, LENGTH_MAX, SESSION_PATTERN, STEPS_MAX, TIMEOUT_MAX_S
from daemon.contract.query import AsOf, DeepOverrides, Mode, QueryCost, QueryText, RetrievalOverrides, Tokens
from daemon.contract.scope import Scope

SessionName = Annotated[str, StringConstraints(pattern=SESSION_PATTERN)]
"""A letter, digit or underscore, then up to 59 letters, digits, underscores, dots and dashes: the name is also a file name."""
OF_MODE = ("mode", "filter", "settings", "depth")
"""Fields that have no effect on deep questions."""
OF_MEMORY = ("filter", "settings", "depth", "passages", "deep", "steps", "scope", "as_of")
"""Fields that have no effect without retrieval."""


class SessionQuestion(Response):
    question: str
    answer: str
    commit: int
    time: AwareDatetime


class SessionEntry(Response):
    """The state of a session at its last question, which used `commit`. `expires_at`: when the session is removed if it is not
    used before. A client that sees only some documents does not receive the answers. `error`: why the session's file cannot be
    read; the other fields are then empty.
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


def given_fields(request: "AskRequest", names: Iterable[str]) -> list[str]:
    """Returns the names of the fields whose values differ from their defaults."""
    values = {name: getattr(request, name) for name in names}
    defaults = AskRequest.model_fields
    return [
        name
        for name, value in values.items()
        if (value.model_fields_set if isinstance(value, Request) else value != defaults[name].default)
    ]


def _ways_to_ask(schema: JsonDict, model: "type[AskRequest]") -> None:
    """Extends the schema so that it rejects fields without effect."""

    def without(*names: str) -> JsonDict:
        return {name: _default_alone(model.model_fields[name].default) for name in names}

    one_step = without("steps", *BUDGETS)
    retrieving: JsonDict = {**without("deep", *DEEP_ONLY), "mode": {"not": {"const": NO_RETRIEVAL}}}
    closed_book = without(*OF_MEMORY, *DEEP_ONLY) | one_step | {"mode": {"const": NO_RETRIEVAL}}
    schema["anyOf"] = [
        {"properties": {**without(*OF_MODE), "deep": {"const": True}}, "required": ["deep"]},
        {"properties": {**retrieving, "steps": {"type": "integer"}}, "required": ["steps"]},
        {"properties": {**retrieving, **one_step}},
        {"properties": closed_book, "required": ["mode"]},
    ]


def _default_alone(default: Any) -> JsonDict:
    if isinstance(default, Request):
        return {"maxProperties": 0}
    return {"type": "null"} if default is None else {"const": default}


class AskRequest(Request):
    """`steps` alone: iterative retrieval with at most this many retrievals, each with the model's last thought as its query.
    `deep`: HGMem's working memory, in steps 0 to `steps` (3 by default); step 0 retrieves for the question itself. `mode`,
    `filter`, `settings` and `as_of` are as in a query; mode "none" answers without retrieval. `passages`: the response also
    contains the retrieved passages, best first; for `deep`, the passages from which each answer was written. `depth`: like
    `passages`, but with `depth` passages of each retrieval if that is more than `k`. `length`: approximate number of words, by
    default one to four sentences. `reason`: the model writes its reasoning before the answer. `verify`: the question is a
    claim, and the short answer is "true" or "false". `consistent`: like `verify`, but "true" means that the memory does not
    contradict the claim; it need not state it.

    With `deep`:
    - `session`: continues with the points of that session's earlier questions.
    - `only`, `update`, `merge`: the paper's ablations.
    - `quick`: judges, raises concerns and writes subqueries in one call per step.
    - `each_step`: also writes an answer after each step.
    - `forced`: makes all steps, even if the points are judged to be enough.
    - `deep_settings`: settings of `[deep]`.

    Budgets of questions in several steps: `max_calls` to the model, `max_tokens` of prompts and answers, and `timeout_s`. When
    a budget is spent, the answer uses the findings so far, and its `note` says so.
    """

    model_config = ConfigDict(json_schema_extra=_ways_to_ask)

    question: QueryText
    deep: JsonBoolean = False
    steps: Annotated[int, Field(ge=1, le=STEPS_MAX), JSON_INTEGER] | None = None
    k: JsonInteger = Field(default=5, ge=1, le=K_MAX)
    mode: Mode | Literal["none"] | None = None
    filter: Filter | None = None
    settings: RetrievalOverrides = RetrievalOverrides()
    as_of: AsOf | None = None
    scope: Scope | None = None
    passages: JsonBoolean = False
    depth: Annotated[int, Field(ge=1, le=K_MAX), JSON_INTEGER] | None = None
    length: Annotated[int, Field(ge=1, le=LENGTH_MAX), JSON_INTEGER] | None = None
    reason: JsonBoolean = False
    verify: JsonBoolean = False
    consistent: JsonBoolean = False
    session: SessionName | None = None
    only: Investigation | None = None
    update: JsonBoolean = True
    merge: JsonBoolean = True
    quick: JsonBoolean = False
    each_step: JsonBoolean = False
    forced: JsonBoolean = False
    deep_settings: DeepOverrides = DeepOverrides()
    max_calls: Annotated[int, Field(ge=1, le=10_000), JSON_INTEGER] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000_000), JSON_INTEGER] | None = None
    timeout_s: Annotated[JsonNumber, Field(gt=0, le=TIMEOUT_MAX_S, allow_inf_nan=False)] | None = None


class Citation(Response):
    """A passage that the answer cites. `id`: id of the passage. `points`: the points of a deep answer that the passage
    supports."""

    rank: int
    document: str
    title: str
    text: str
    id: str = ""
    points: list[str] = Field(default_factory=list, exclude_if=is_empty)


class RetrievedPassage(Response):
    """A passage that was retrieved for the answer; fields as in a query's answer. `score`: the score divided by the best score
    of its step; if several steps found the passage, the largest quotient. In a deep answer, the cosine with the question.
    """

    rank: int
    score: float
    id: str
    title: str
    text: str
    document: str
    also_in: list[str] = Field(default_factory=list, exclude_if=is_empty)


class AskSession(Response):
    """The session that the question continued. `points`: number of its points at `commit`, the commit of its last question.
    `forgotten`: number of these points that have lost all supporting passages since; `weakened`: number of points that have
    lost some passages.
    """

    name: str
    commit: int | None = None
    questions: int
    points: int
    forgotten: int = 0
    weakened: int = 0


class AskResponse(Response):
    """An answer from the memory at `commit`. `found`: whether the memory contains the answer. `short`: the bare answer.
    `reasoning`: the model's text before the answer, if requested. `passages`: the retrieved passages, best first, if requested.
    `note`: what the user should know about the answer. `steps`: the record of each step; `stopped`: why the steps ended.
    `calls`: requests to the model; `own_ms`: hippod's time without waiting for the model. `written`: false if the model failed
    and the answer consists of the steps' results. `remembered`: cost of recognition memory's answers that equal earlier queries
    have paid for; `tokens` and `calls` do not include this cost. A deep answer also has `version`, `settings`, `earlier` (the
    working memory at the beginning), `forgotten` (ids of the points dropped from it), `answered` (the calls that wrote the
    answer), and `entities_a_point`, the average number of entities per point.
    """

    question: str
    answer: str
    citations: list[Citation]
    steps: list[dict[str, Any]]
    tokens: Tokens
    remembered: QueryCost | None = Field(default=None, exclude_if=is_empty)
    took_ms: float
    found: bool = True
    short: str = ""
    reasoning: str | None = Field(default=None, exclude_if=is_empty)
    passages: list[RetrievedPassage] = Field(default_factory=list, exclude_if=is_empty)
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
    """The text of a streamed answer so far."""

    text: str
