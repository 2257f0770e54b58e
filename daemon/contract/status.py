"""How the memory and the daemon stand."""

from pydantic import AwareDatetime, Field

from daemon.contract.model import OpenResponse, Response, absent
from daemon.contract.routes import DaemonState


class Edges(Response):
    relation: int
    context: int
    synonym: int


BAD_SOURCE_STATES = ("missing", "error", "unreachable", "denied", "stopped")
"""In which a source reads nothing."""


class SourceStatus(OpenResponse):
    """`lag`: how many changes the source knows of that are not committed yet; `None` when it cannot say."""

    kind: str
    name: str
    state: str
    lag: int | None = None


class ExtractionStatus(Response):
    """Passages that wait for the extractor, those it could not read; what all wait for and since when, where they do."""

    waiting: int
    failed: int
    waiting_for: str | None = Field(default=None, exclude_if=absent)
    since: AwareDatetime | None = Field(default=None, exclude_if=absent)


class SynonymRecall(Response):
    """Of `phrases` sampled ones, at `commit`, `pairs` synonym edges should exist; `recall` is the share that does."""

    commit: int
    phrases: int
    pairs: int
    recall: float


class Status(Response):
    """`pending` and `failed` count documents. `trouble`: why nothing can be committed now (a full disk, say).

    `synonym_recall`: only where phrases are too many to compare each with all.
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
    sources: list[SourceStatus]
    uptime_s: float
    rss_bytes: int
    extraction: ExtractionStatus | None = Field(default=None, exclude_if=absent)
    trouble: str | None = Field(default=None, exclude_if=absent)
    synonym_recall: SynonymRecall | None = Field(default=None, exclude_if=absent)


class Health(Response):
    """`state` is "ready" exactly when the HTTP status is 200."""

    state: DaemonState


class Event(OpenResponse):
    """One thing that happened. `id` grows by one an event and starts anew with the daemon."""

    id: int | None = Field(default=None, exclude_if=absent)
    time: AwareDatetime
    event: str
    uri: str | None = None
