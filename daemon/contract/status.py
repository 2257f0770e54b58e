"""`/v1/status`, `/v1/wait`, `/v1/events`, `/v1/extraction` and `/healthz`: the content of the memory, and the daemon's work."""

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field, SerializeAsAny

from daemon.contract.base import JsonBoolean, JsonNumber, OpenResponse, Request, Response, is_empty
from daemon.contract.documents import DocumentEntry
from daemon.contract.http.routes import TIMEOUT_MAX_S
from daemon.contract.query import Tokens


class DaemonState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"


class Health(Response):
    """The state; "ready" exactly if the HTTP status is 200."""

    state: DaemonState


class WaitRequest(Request):
    """Waits until everything is committed, but at most `timeout_s` if given."""

    timeout_s: Annotated[JsonNumber, Field(ge=0, le=TIMEOUT_MAX_S, allow_inf_nan=False)] | None = None


class Edges(Response):
    relation: int
    mention: int = 0
    context: int
    synonym: int


PAUSED = "paused"
"""The state of a source that waits for memory. Replaces every state except `BAD_SOURCE_STATES`."""

BAD_SOURCE_STATES = ("missing", "error", "unreachable", "denied", "stopped")
"""The states in which a source delivers nothing."""


class SourceStatus(OpenResponse):
    """A source. `lag`: number of known changes that are not committed; `None` if unknown."""

    kind: str
    name: str
    state: str
    lag: int | None = None


class ExtractionEstimate(Response):
    """The cost of extracting `passages` passages. `calls`: minimum number of calls of the model server. `tokens`, `money` (null
    without `[llm] price_per_million`) and `left_s` (seconds) are extrapolated from extracted passages.
    """

    passages: int
    calls: int
    tokens: Tokens
    money: float | None
    left_s: float


class ExtractionStatus(Response):
    """Passages that wait for the extractor, and passages on which it failed. `waiting_for`, `since`: present if all of these
    passages wait for the same thing, such as the model server or the next day's budget. `estimate`: the cost of the waiting
    passages; only after enough passages were extracted since the start.
    """

    waiting: int
    failed: int
    waiting_for: str | None = Field(default=None, exclude_if=is_empty)
    since: AwareDatetime | None = Field(default=None, exclude_if=is_empty)
    estimate: ExtractionEstimate | None = Field(default=None, exclude_if=is_empty)


class SynonymRecall(Response):
    """Measured on a sample of `phrases` phrases, at `commit`. `pairs`: number of synonym edges that should exist; `recall`: the
    share of these edges that exists.
    """

    commit: int
    phrases: int
    pairs: int
    recall: float


SERIOUS_SHARE, SERIOUS_MIN = 0.05, 100
"""An encoder is unsuitable if the phrases that it cannot distinguish exceed both this share of all phrases and this number."""


class IndistinctPhrases(Response):
    """Phrases that the encoder cannot distinguish and that get no synonym edges. `unknown`: the encoder knows no word of
    them. `crowded`: hundreds of other phrases have nearly the same vector.
    """

    unknown: int
    crowded: int

    def is_serious(self, phrases: int) -> bool:
        """Returns whether so many of `phrases` phrases are indistinct that another encoder should be used."""
        return self.unknown + self.crowded > max(SERIOUS_MIN, SERIOUS_SHARE * phrases)


class Progress(Response):
    """Progress of long work. `task`: "index" (documents being indexed), "extract" (passages that wait for the model),
    "reextract" (passages whose extraction is outdated), "reencode" (texts that get vectors of another encoder), "import",
    "verify" or "backup". `step`: the current step, if the work has several; `done` begins at 0 in each step. `done` and `total`
    count `unit`s; `share` is their ratio. `rate`: units per second over the last minute; `left_s`: the remaining time at that
    rate.
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
    """Memory that the kernel cannot reclaim, and its limit (`[store] memory_limit`, null for none), in bytes.
    `bytes_per_passage`: growth with each passage. `room_passages`: number of further passages that fit. `full_in_s`: seconds
    until the limit at the rate of the last ten minutes. These three fields are null until there is a trend. `paused`: why no
    new documents are accepted.
    """

    used_bytes: int
    limit_bytes: int | None = None
    bytes_per_passage: int | None = None
    room_passages: int | None = None
    full_in_s: float | None = None
    paused: str | None = Field(default=None, exclude_if=is_empty)


class PassageShare(Response):
    """Number of passages that one extractor has extracted, or one encoder has encoded. An extractor's name may also be "none"
    (the passages are not extracted) or "supplied" (their documents state the triples). `left_s`: seconds to extract again, if
    the present rules may find other triples because they are newer or an extra was installed or removed; or seconds to encode
    again, while another encoder replaces this encoder.
    """

    name: str
    passages: int
    left_s: float | None = Field(default=None, exclude_if=is_empty)


class Unapplied(Response):
    """A setting that the content does not follow yet. `content`: the value that made the content; `configured`: the configured
    value; `command`: applies the configured value to the content."""

    setting: str
    content: str
    configured: str
    command: str


class ReaderShare(Response):
    """Number of followed documents that one version of the reader has parsed ("reader/0": an unknown version). hippod parses
    the files of earlier versions again.
    """

    name: str
    documents: int


class Status(Response):
    """`pending` and `failed` count documents; `skipped` counts intentionally excluded documents, by reason; `left_out` counts,
    by kind, content of the files that no passage contains. `llm`: the model that answers `ask`, if one is configured.
    `progress`: of long work. `trouble`: why commits fail or the log grows (for example, the disk is full). `synonym_recall`:
    only if there are too many phrases to compare all. `indistinct_phrases`: only if there are such phrases. `languages`: shares
    of passages by ISO 639 code, in a sample. `encoder_advice`: what to set if the documents need another encoder.
    `extractor_advice`: what to install if the rules lack taggers of the documents' languages. `extractors`, `readers` and
    `encoders`: the programs and models that made the stored data. `unapplied`: settings that the stored data does not follow
    yet. A client that sees only some documents gets the counts of these documents. Its status has no `progress`, `extraction`,
    `memory`, `languages`, `encoder_advice`, `extractor_advice`, `extractors`, `readers`, `encoders` and `unapplied`, and
    `rss_bytes` is 0.
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
    extractor_advice: str | None = Field(default=None, exclude_if=is_empty)
    extractors: list[PassageShare] = Field(default_factory=list, exclude_if=is_empty)
    readers: list[ReaderShare] = Field(default_factory=list, exclude_if=is_empty)
    encoders: list[PassageShare] = Field(default_factory=list, exclude_if=is_empty)
    unapplied: list[Unapplied] = Field(default_factory=list, exclude_if=is_empty)


class EventName(StrEnum):
    """The events of `GET /v1/events` other than those of documents, which are named after the document's new `DocumentState`. A
    reader must ignore unknown names.
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
    """Numbers of passages and tokens that one extractor (model and prompt) has processed over the life of the store."""

    extractor: str
    passages: int
    prompt_tokens: int
    completion_tokens: int


class ReextractRequest(Request):
    """With `dry_run`, queues no passages; the response contains the numbers that would be queued. If the model has extracted
    too few passages for an estimate, it extracts a random sample now; its extractions are kept and not paid for again.
    """

    dry_run: JsonBoolean = False


class ExtractionResponse(Response):
    """`requeued`: number of passages that this request added to the `waiting` passages. `running`: whether a backfill is
    running. `note`: a remark that no model is configured, or the reason why no sample was extracted. Only after `reextract`:
    the number of `passages` to extract again, the minimum number of `calls` of the model server for them, and, extrapolated
    from extracted passages, `tokens`, `money` (with `[llm] price_per_million`) and seconds (`left_s`).
    """

    extractor: str
    requeued: int
    waiting: int
    failed: int
    running: bool
    error: str | None = Field(default=None, exclude_if=is_empty)
    waiting_for: str | None = Field(default=None, exclude_if=is_empty)
    note: str | None = Field(default=None, exclude_if=is_empty)
    passages: int | None = Field(default=None, exclude_if=is_empty)
    calls: int | None = Field(default=None, exclude_if=is_empty)
    tokens: Tokens | None = Field(default=None, exclude_if=is_empty)
    money: float | None = Field(default=None, exclude_if=is_empty)
    left_s: float | None = Field(default=None, exclude_if=is_empty)
    spent: list[ExtractionCost]


class ReencodeResponse(Response):
    """`encoder` made the vectors that answer queries; `configured` is the encoder that will replace it, absent if there is
    nothing to do. While it is `running`: the numbers of `passages` and `texts` (passages, phrases and triples) that have no new
    vector yet, the minimum number of `calls` of the encoder's server for them, the remaining seconds (`left_s`), and the disk
    space that the work needs until the old vectors are deleted (`disk_bytes`). `error`: why the work waits for its next try.
    """

    encoder: str
    configured: str | None = Field(default=None, exclude_if=is_empty)
    running: bool
    error: str | None = Field(default=None, exclude_if=is_empty)
    passages: int
    texts: int
    calls: int
    left_s: float | None = Field(default=None, exclude_if=is_empty)
    disk_bytes: int


class GrowthPoint(Response):
    """The size of the memory at a commit that `as_of` can still select."""

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
