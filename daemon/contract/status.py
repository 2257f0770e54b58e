"""`/v1/status`, `/v1/wait`, `/v1/events`, `/v1/extraction` and `/healthz`: what the memory holds and what the daemon does."""

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field, SerializeAsAny

from daemon.contract.base import JsonNumber, OpenResponse, Request, Response, is_empty
from daemon.contract.documents import DocumentEntry
from daemon.contract.limits import TIMEOUT_MAX_S


class DaemonState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"


class Health(Response):
    """`state` is "ready" exactly when the HTTP status is 200."""

    state: DaemonState


class WaitRequest(Request):
    """Without `timeout_s`, as long as it takes."""

    timeout_s: Annotated[JsonNumber, Field(ge=0, le=TIMEOUT_MAX_S, allow_inf_nan=False)] | None = None


class Edges(Response):
    relation: int
    context: int
    synonym: int


PAUSED = "paused"
"""The state of a source that waits for memory, whatever it is about otherwise."""

BAD_SOURCE_STATES = ("missing", "error", "unreachable", "denied", "stopped")
"""A source in one of these states reads nothing."""


class SourceStatus(OpenResponse):
    """`lag`: how many changes the source knows of that are not committed yet; `None` when it cannot say."""

    kind: str
    name: str
    state: str
    lag: int | None = None


class ExtractionStatus(Response):
    """Passages that wait for the extractor, and passages that it could not read. Where all wait for something, such as the
    model's server: for what, and since when."""

    waiting: int
    failed: int
    waiting_for: str | None = Field(default=None, exclude_if=is_empty)
    since: AwareDatetime | None = Field(default=None, exclude_if=is_empty)


class SynonymRecall(Response):
    """Of a sample of `phrases`, at `commit`: `pairs` synonym edges should exist, and `recall` is the share that does."""

    commit: int
    phrases: int
    pairs: int
    recall: float


SERIOUS_SHARE, SERIOUS_LEAST = 0.05, 100
"""Phrases that an encoder cannot tell apart, beyond both of which it is the wrong one for what is read."""

OTHER_ENCODER = (
    "set [encoder] model to one for many languages (sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2, "
    'intfloat/multilingual-e5-small) and [store] path to a new store: docs/how-to/models.md, "Other languages"'
)


ENGLISH_ENCODER = "all-MiniLM-L6-v2"
"""The packaged encoder, which was trained on English: of most other languages in Latin letters it knows pieces of words."""

FOREIGN_SHARE = 0.2
"""Passages in other languages from which on an encoder for English is the wrong one."""


class IndistinctPhrases(Response):
    """Phrases that the encoder cannot tell apart, which get no synonym edges: it knows nothing of the `unknown`, and hundreds
    of others lie about the vector of each that is `crowded`."""

    unknown: int
    crowded: int

    def is_serious(self, phrases: int) -> bool:
        """Whether these are so many of `phrases` that another encoder is wanted."""
        return self.unknown + self.crowded > max(SERIOUS_LEAST, SERIOUS_SHARE * phrases)


class Progress(Response):
    """How far long work is. `task`: "index" (documents that are being read), "extract" (passages that the model reads),
    "import", "verify" or "backup"; `step`: what it is at, where it has several, each of which counts from 0.

    `done` and `total` count `unit`s, `share` is their ratio; `rate` is units a second over the last minute, `left_s` how long
    the rest takes at that rate. What is not known is null: a total before all is counted, a rate while nothing moves.
    """

    task: str
    step: str | None = None
    unit: str
    done: int
    total: int | None = None
    share: float | None = None
    rate: float | None = None
    left_s: float | None = None
    took_s: float


class MemoryUse(Response):
    """What the daemon holds that the system cannot drop, and its limit (`[store] memory_limit`, null for none), in bytes.

    `bytes_per_passage`: of what it holds since it opened the store. `room_passages`: how many more there is room for;
    `full_in_s`: after how many seconds there is none, at the rate of the last ten minutes. Each is null where it is not known
    or will not be. `paused`: why nothing is taken in.
    """

    used_bytes: int
    limit_bytes: int | None = None
    bytes_per_passage: int | None = None
    room_passages: int | None = None
    full_in_s: float | None = None
    paused: str | None = Field(default=None, exclude_if=is_empty)


class Status(Response):
    """`pending` and `failed` count documents; `skipped` counts documents that are not read on purpose, by reason. `left_out`
    counts, by kind, content of the files that no passage contains.

    `llm`: the model that answers `ask`, left out where none is configured.

    `progress`: of long work under way. `trouble`: why nothing can be committed now (a full disk, say). `synonym_recall`: only
    where phrases are too many to compare each with all. `indistinct_phrases`: only where there are any. `languages`: shares of
    passages by ISO 639 code, of a sample. A client that sees a part of the documents is told of that part: without `progress`,
    `extraction`, `memory` and `languages`, and `rss_bytes` is 0.
    """

    state: DaemonState
    commit: int
    pending: int
    failed: int
    documents: int
    passages: int
    phrases: int
    triples: int
    edges: Edges
    encoder: str
    openie: str
    llm: str | None = Field(default=None, exclude_if=is_empty)
    left_out: dict[str, int] = Field(default_factory=dict)
    skipped: dict[str, int] = Field(default_factory=dict)
    sources: list[SerializeAsAny[SourceStatus]]
    uptime_s: float
    rss_bytes: int
    memory: MemoryUse | None = Field(default=None, exclude_if=is_empty)
    progress: list[Progress] = Field(default_factory=list, exclude_if=is_empty)
    extraction: ExtractionStatus | None = Field(default=None, exclude_if=is_empty)
    trouble: str | None = Field(default=None, exclude_if=is_empty)
    synonym_recall: SynonymRecall | None = Field(default=None, exclude_if=is_empty)
    indistinct_phrases: IndistinctPhrases | None = Field(default=None, exclude_if=is_empty)
    languages: dict[str, float] = Field(default_factory=dict, exclude_if=is_empty)


class EventName(StrEnum):
    """The events of `GET /v1/events` beside those of documents, which are named after the `DocumentState` that each came to.

    A reader must ignore names that it does not know.
    """

    COMMIT = "commit"
    LOST = "lost"
    """The reader was too slow: `count` events before this one were dropped."""


class Event(OpenResponse):
    """One thing that happened. `id` grows by one with each event and starts anew with the daemon."""

    id: int | None = Field(default=None, exclude_if=is_empty)
    time: AwareDatetime
    event: str
    uri: str | None = None


class ExtractionCost(Response):
    """How many passages one extractor (model and prompt) was asked about over the life of the store, and the tokens."""

    extractor: str
    passages: int
    prompt_tokens: int
    completion_tokens: int


class ExtractionResponse(Response):
    """`requeued`: passages that this request added to those `waiting`. `running`: a backfill is under way. `note`: that no
    model reads, where there is none."""

    extractor: str
    requeued: int
    waiting: int
    failed: int
    running: bool
    error: str | None = Field(default=None, exclude_if=is_empty)
    waiting_for: str | None = Field(default=None, exclude_if=is_empty)
    note: str | None = Field(default=None, exclude_if=is_empty)
    spent: list[ExtractionCost]


class GrowthPoint(Response):
    """What lived in the memory as of a commit that can still be asked about (`as_of`)."""

    commit: int
    time: AwareDatetime
    passages: int
    phrases: int
    triples: int


class Overview(Response):
    """`GET /page/overview`, for the page alone. `growth` is in order of commits; `recent` are the documents committed last,
    the newest first. A client that sees a part of the documents has no `growth`."""

    growth: list[GrowthPoint]
    recent: list[DocumentEntry]
