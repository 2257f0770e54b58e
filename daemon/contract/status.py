"""`/v1/status`, `/v1/wait`, `/v1/events`, `/v1/extraction` and `/healthz`: what the memory holds and what the daemon does."""

from collections.abc import Mapping
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
    """The state; "ready" exactly if the HTTP status is 200."""

    state: DaemonState


class WaitRequest(Request):
    """Waits at most `timeout_s`; without it, until everything is committed."""

    timeout_s: Annotated[JsonNumber, Field(ge=0, le=TIMEOUT_MAX_S, allow_inf_nan=False)] | None = None


class Edges(Response):
    relation: int
    mention: int = 0
    context: int
    synonym: int


PAUSED = "paused"
"""The state of a source that waits for memory, whatever it is about otherwise."""

BAD_SOURCE_STATES = ("missing", "error", "unreachable", "denied", "stopped")
"""A source in one of these states reads nothing."""


class SourceStatus(OpenResponse):
    """A source. `lag`: number of known changes that are not committed; `None` if unknown."""

    kind: str
    name: str
    state: str
    lag: int | None = None


class ExtractionStatus(Response):
    """Passages that wait for the extractor, and passages that it could not read. `waiting_for`, `since`: if all wait for
    something, such as the model server.
    """

    waiting: int
    failed: int
    waiting_for: str | None = Field(default=None, exclude_if=is_empty)
    since: AwareDatetime | None = Field(default=None, exclude_if=is_empty)


class SynonymRecall(Response):
    """Measured on a sample of `phrases`, at `commit`: `pairs` synonym edges should exist, and `recall` is the share that
    does.
    """

    commit: int
    phrases: int
    pairs: int
    recall: float


SERIOUS_SHARE, SERIOUS_LEAST = 0.05, 100
"""Phrases that an encoder cannot tell apart, beyond both of which it is the wrong one for what is read."""

ENGLISH_ENCODER = "all-MiniLM-L6-v2"
"""The packaged encoder, which was trained on English: of most other languages in Latin letters it knows pieces of words."""

MULTILINGUAL_ENCODER = "multilingual-e5-small-4bit"

FOREIGN_SHARE = 0.2
"""Passages in other languages from which on an encoder for English is the wrong one."""


class IndistinctPhrases(Response):
    """Phrases that the encoder cannot distinguish and that get no synonym edges. `unknown`: the encoder knows no word of
    them. `crowded`: hundreds of other phrases have nearly the same vector.
    """

    unknown: int
    crowded: int

    def is_serious(self, phrases: int) -> bool:
        """Whether these are so many of `phrases` that another encoder is wanted."""
        return self.unknown + self.crowded > max(SERIOUS_LEAST, SERIOUS_SHARE * phrases)


def foreign_languages(encoder: str, languages: Mapping[str, float]) -> dict[str, float]:
    """The shares of the languages that the encoder was not made for, if they are `FOREIGN_SHARE` or more together."""
    foreign = {code: share for code, share in languages.items() if code != "en"}
    return foreign if ENGLISH_ENCODER in encoder and sum(foreign.values()) >= FOREIGN_SHARE else {}


def encoder_advice(
    encoder: str, phrases: int, indistinct: IndistinctPhrases | None, languages: Mapping[str, float]
) -> str | None:
    """What to set if the documents need another encoder; else None."""
    indistinguishable = indistinct is not None and indistinct.is_serious(phrases)
    if not indistinguishable and not foreign_languages(encoder, languages):
        return None
    if encoder == MULTILINGUAL_ENCODER:
        first = "set [encoder] model to one that knows the languages of the documents"
    else:
        first = (
            "install the multilingual encoder (`make install EXTRAS=multilingual` in a checkout, or pip install "
            f"'hippod[multilingual]'), set [encoder] model to \"{MULTILINGUAL_ENCODER}\""
        )
    return f'{first}, and [store] path to a new store: docs/how-to/models.md, "Other languages"'


class Progress(Response):
    """Progress of long work. `task`: "index" (documents being read), "extract" (passages the model reads), "import", "verify"
    or "backup". `step`: the current step, if there are several; each counts from 0. `done` and `total` count `unit`s;
    `share` is their ratio. `rate`: units per second over the last minute; `left_s`: the remaining time at that rate.
    Unknown values are null.
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
    """Memory that the kernel cannot drop, and its limit (`[store] memory_limit`, null for none), in bytes.
    `bytes_per_passage`: growth since the store was opened. `room_passages`: number of further passages that fit.
    `full_in_s`: seconds until the limit at the rate of the last ten minutes. Unknown values are null. `paused`: why
    nothing is accepted.
    """

    used_bytes: int
    limit_bytes: int | None = None
    bytes_per_passage: int | None = None
    room_passages: int | None = None
    full_in_s: float | None = None
    paused: str | None = Field(default=None, exclude_if=is_empty)


class Status(Response):
    """The daemon's state. `pending` and `failed` count documents; `skipped` counts documents that are not read on purpose, by
    reason; `left_out` counts, by kind, content of the files that no passage contains. `llm`: the model that answers `ask`, if
    one is configured. `progress`: of long work. `trouble`: why commits fail (for example, the disk is full).
    `synonym_recall`: only if there are too many phrases to compare all. `indistinct_phrases`: only if there are any.
    `languages`: shares of passages by ISO 639 code, in a sample. `encoder_advice`: what to set if the documents need another
    encoder. A client that sees only some documents gets the counts of these, without `progress`, `extraction`, `memory`,
    `languages` and `encoder_advice`; its `rss_bytes` is 0.
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
    encoder_advice: str | None = Field(default=None, exclude_if=is_empty)


class EventName(StrEnum):
    """The events of `GET /v1/events` in addition to those of documents, which are named after the document's new
    `DocumentState`. A reader must ignore unknown names.
    """

    COMMIT = "commit"
    LOST = "lost"
    """The reader was too slow: `count` events before this one were dropped."""


class Event(OpenResponse):
    """An event. `id` increases by one with each event and restarts with the daemon."""

    id: int | None = Field(default=None, exclude_if=is_empty)
    time: AwareDatetime
    event: str
    uri: str | None = None


class ExtractionCost(Response):
    """Number of passages that one extractor (model and prompt) has read over the life of the store, and the tokens."""

    extractor: str
    passages: int
    prompt_tokens: int
    completion_tokens: int


class ExtractionResponse(Response):
    """`requeued`: passages that this request added to those `waiting`. `running`: whether a backfill is running. `note`: says
    that no model is configured, if so.
    """

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
    """The size of the memory as of a commit that `as_of` can still use."""

    commit: int
    time: AwareDatetime
    passages: int
    phrases: int
    triples: int


class Overview(Response):
    """`GET /page/overview`, for the page. `growth` is in order of commits; `recent`: the documents committed last, newest
    first. A client that sees only some documents gets no `growth`.
    """

    growth: list[GrowthPoint]
    recent: list[DocumentEntry]
