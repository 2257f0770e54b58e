"""`POST /v1/query`: a query, the passages found, and their explanation.

The modes and settings that a request may name are derived from their declarations in `memory`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, StringConstraints, create_model

from daemon.contract.base import (
    JSON_INTEGER,
    JsonBoolean,
    JsonInteger,
    JsonNumber,
    OpenResponse,
    Request,
    Response,
    Timestamp,
    is_empty,
)
from daemon.contract.choices import DEEP_SETTINGS, MODES, SETTINGS, Filter, Setting
from daemon.contract.documents import TripleText
from daemon.contract.http.routes import AFTER_TIMEOUT_MAX_S, K_MAX, QUERY_CHARS_MAX
from daemon.contract.scope import Scope

NOT_BLANK = r"\S"
ADDED_POSITION = "added"
"""The key of the position that `add` returns."""
AFTER_MAX = 64
"""Maximum positions in one query."""
PositionKey = Annotated[str, StringConstraints(min_length=1, max_length=8192)]
QueryText = Annotated[str, StringConstraints(min_length=1, max_length=QUERY_CHARS_MAX, pattern=NOT_BLANK)]
AsOf = Annotated[int, Field(ge=1), JSON_INTEGER] | Timestamp
"""The number of a commit, or a time (RFC 3339)."""


class Mode(StrEnum):
    """The retrieval mode."""

    _ignore_ = ["name"]  # noqa: RUF012 (the enum module's own name)
    for name in MODES:
        vars()[name.upper().replace("-", "_")] = name


def _field_of(setting: Setting) -> Any:
    """Returns the type of a setting in a request. None stands for the configured value."""
    if setting.kind is bool:
        return JsonBoolean | None
    if setting.choices:
        return Literal[setting.choices] | None
    if setting.kind is int:
        return Annotated[int, Field(**setting.bounds), JSON_INTEGER] | None
    return Annotated[JsonNumber, Field(**setting.bounds, allow_inf_nan=False)] | None


if TYPE_CHECKING:

    class RetrievalOverrides(Request):
        """Has a field for each of `SETTINGS`."""

    class DeepOverrides(Request):
        """Has a field for each of `DEEP_SETTINGS`."""

else:

    def _overrides(name: str, purpose: str, settings: Mapping[str, Setting]) -> type[Request]:
        doc = f"Settings of {purpose}; settings that are omitted are as configured."
        fields = {key: (_field_of(setting), None) for key, setting in settings.items()}
        return create_model(name, __base__=Request, __doc__=doc, __module__=__name__, **fields)

    RetrievalOverrides = _overrides("RetrievalOverrides", "`[retrieval]` for one query", SETTINGS)
    DeepOverrides = _overrides("DeepOverrides", "`[deep]` for one question", DEEP_SETTINGS)


class QueryRequest(Request):
    """`mode`, `filter` and `settings` are as configured unless they are given. `as_of`: an earlier state of the memory, by time
    (RFC 3339) or number of a commit. `scope`: some documents only. `after`: positions that the memory must have reached: the
    `position` of an answer to `add`; or the offset of a message, by topic and partition (`{"records/0": 41}`) or by the URI of
    its document. The query waits up to `after_timeout_s`; then it is refused, and `errors` contain the positions reached.
    """

    query: QueryText
    k: JsonInteger = Field(default=5, ge=1, le=K_MAX)
    mode: Mode | None = None
    filter: Filter | None = None
    as_of: AsOf | None = None
    scope: Scope | None = None
    explain: JsonBoolean = False
    settings: RetrievalOverrides = RetrievalOverrides()
    after: Annotated[Mapping[PositionKey, JsonInteger], Field(max_length=AFTER_MAX)] | None = None
    after_timeout_s: Annotated[JsonNumber, Field(ge=0, le=AFTER_TIMEOUT_MAX_S, allow_inf_nan=False)] = 10.0


class RankedPassage(Response):
    """A found passage. `rank` counts from 1. `document`: the first, by URI, of the documents that contain the passage.
    `also_in`: the other documents that contain it, then the documents with older versions of the passage, newest first.
    `conflicting_values`: words with a digit that only some of these versions contain. `score` depends on the mode and is
    comparable within this answer only. `cosine`: the passage's similarity to the query; absent if passages are compared by
    words only (`bm25`, or a query that the encoder does not know).
    """

    rank: int
    score: float
    cosine: float | None = Field(default=None, exclude_if=is_empty)
    id: str
    title: str
    text: str
    document: str
    location: dict[str, Any]
    also_in: list[str] = Field(default_factory=list, exclude_if=is_empty)
    conflicting_values: list[str] = Field(default_factory=list, exclude_if=is_empty)


class ScoredTriple(TripleText):
    """A triple that the query was linked to. `kept`: whether recognition memory kept it."""

    score: float
    kept: bool


class SeedPhrase(Response):
    phrase: str
    weight: float


class PassageReference(Response):
    """A passage. `document`: the first, by URI, of the documents that contain it."""

    id: str
    title: str
    document: str


class PhraseShare(Response):
    phrase: str
    share: float


class PassageShare(PassageReference):
    share: float


class StatedTriple(TripleText):
    """A triple and the passages that state it."""

    passages: list[PassageReference]


class PathStep(Response):
    """A node of the path, and the edge from the previous node to it. `kind`: "phrase" or "passage". A passage has an `id`,
    and its `text` is its title. `edge`: "relation", "mention", "synonym" or "context", with its weight and its triples.
    """

    kind: str
    text: str
    id: str | None = Field(default=None, exclude_if=is_empty)
    edge: str | None = Field(default=None, exclude_if=is_empty)
    weight: float | None = Field(default=None, exclude_if=is_empty)
    triples: list[StatedTriple] = Field(default_factory=list, exclude_if=is_empty)


class StrongestPath(Response):
    """The strongest path from a seed to the passage. `share`: the share of the passage's score that came along exactly these
    edges."""

    share: float
    steps: list[PathStep]


class LedByLink(Response):
    """The link that led to a passage. `source`: the passage that contains the link; `target`: the linked document; `heading`:
    the linked heading in the target; `text`: the link's visible text."""

    source: PassageReference
    target: str
    heading: str = Field(default="", exclude_if=is_empty)
    text: str = Field(default="", exclude_if=is_empty)


class PassageExplanation(Response):
    """Why the passage at `rank` was found: its cosine with the query, and the seeds of its PageRank. `own_share` (the passage's
    own similarity), the shares of `seeds`, and `other_share` (all other passages; `others` contains the largest) sum to 1.
    Modes without PageRank have no shares. `hub_factor`: share of the weight from other nodes that a passage with unusually many
    triples keeps. `near_duplicate_of`: the id of a better passage with nearly the same text. The score is then the better
    passage's score divided by `group_size`, and the shares are those of the better passage. `link`: the passage has its score
    from this link of a better passage, so it has no shares.
    """

    rank: int
    id: str
    similarity: float
    own_share: float | None = Field(default=None, exclude_if=is_empty)
    seeds: list[PhraseShare] = Field(default_factory=list)
    other_share: float | None = Field(default=None, exclude_if=is_empty)
    others: list[PassageShare] = Field(default_factory=list, exclude_if=is_empty)
    path: StrongestPath | None = Field(default=None, exclude_if=is_empty)
    link: LedByLink | None = Field(default=None, exclude_if=is_empty)
    hub_factor: float | None = Field(default=None, exclude_if=is_empty)
    near_duplicate_of: str | None = Field(default=None, exclude_if=is_empty)
    group_size: int | None = Field(default=None, exclude_if=is_empty)


class Explanation(OpenResponse):
    """The milliseconds of each stage, and why each passage was found."""

    stages_ms: dict[str, float] = Field(default_factory=dict)
    passages: list[PassageExplanation] = Field(default_factory=list)


class Tokens(Response):
    prompt: int
    completion: int


class QueryCost(Response):
    """Model calls and tokens of recognition memory and of naming the query's entities. `remembered`: an equal earlier query
    paid for the calls, and their answers were reused.
    """

    calls: int
    tokens: Tokens
    remembered: bool = False


class QueryResponse(Response):
    """An answer to a query. `note`: what the user should know about it: an empty filter, a fallback, documents that are still
    being indexed. `stages_ms`: milliseconds by stage. `weak`: nothing in the memory answers the query well, because even the
    nearest passage is far from it; absent if no threshold was measured for the encoder, or if passages were compared by words.
    `cost`: the cost of model calls, if the query needed calls.
    """

    query: str
    mode: str
    commit: int
    took_ms: float
    passages: list[RankedPassage]
    triples: list[ScoredTriple]
    seeds: list[SeedPhrase]
    stages_ms: dict[str, float] = Field(default_factory=dict, exclude_if=is_empty)
    explain: Explanation | None = Field(default=None, exclude_if=is_empty)
    weak: bool | None = Field(default=None, exclude_if=is_empty)
    cost: QueryCost | None = Field(default=None, exclude_if=is_empty)
    note: str | None = Field(default=None, exclude_if=is_empty)
