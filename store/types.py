"""The values that enter the store: plain data, and the identities and times that follow from it. This module imports nothing
slow.

A passage is identified by its content (`passage_id`), a phrase by its normalised text, a triple by its three normalised parts.
Texts must be normalised before they enter the store, which never changes a text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:  # The rules run in child processes, which have no vectors and do not import numpy.
    from store.fixed_point import Vector

Triple = tuple[str, str, str]
"""(subject, predicate, object), each normalised."""

MENTION = ""
"""The predicate of a mention edge: a triple whose passage only names its ends together. A mention edge has no vector."""

Pause = Callable[[], None]
"""A function that long work calls every few milliseconds to let other threads run."""


def no_pause() -> None:
    """The `Pause` of work that does not delay other threads."""


def is_statement(triple: Triple) -> bool:
    """Whether a triple is a statement rather than a mention edge."""
    return triple[1] != MENTION


class State(StrEnum):
    """The state of a document; every document is in exactly one state."""

    PENDING = "pending"
    INDEXED = "indexed"
    FAILED = "failed"
    SKIPPED = "skipped"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Link:
    """A link as its author wrote it: the target (a path, a name, an address), the heading in it, and the displayed text.

    `store.links` resolves a link to a document.
    """

    target: str
    heading: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class PassageRef:
    """A document's use of a passage: the passage, its location in the document, and the triples supplied with the document."""

    passage: str
    location: Mapping[str, Any] = field(default_factory=dict)
    triples: tuple[Triple, ...] | None = None
    """Triples that the document supplies; None if the local extractor processes the passage.

    The triples belong to this document only (`store.index.effective_triples`).
    """
    extractor: str | None = None
    """Name of the extractor that found `triples`, if they came in a record (docs/reference/records.md); None if the document
    itself states them."""
    links: tuple[Link, ...] = ()
    """The document's links in the passage and in the headings above it.

    Another document with the same passage may have other links, because relative paths have another base there.
    """


@dataclass(frozen=True, slots=True)
class Omission:
    """Content of a document's file that no passage contains, described by a word for its kind, a number of items, and a
    sentence for users."""

    kind: str
    count: int
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """One document as of a commit. `passages` are in reading order."""

    uri: str
    source: str
    title: str = ""
    state: State = State.INDEXED
    error: str | None = None
    """Why the document failed or was skipped: a sentence for users."""
    code: str | None = None
    """The reason as one of a few fixed words; failures are counted by these words."""
    attempts: int = 0
    next_try: float | None = None
    """Time of a failed document's next try in Unix seconds; None if it waits for `hippoctl retry`."""
    modified_at: float | None = None
    committed_at: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    passages: Sequence[PassageRef] = ()
    payload: str | None = None
    """JSON data with which a pending or failed document without a file can be indexed."""
    left_out: tuple[Omission, ...] = ()


LABELS = "labels"
"""The metadata key of a document's own labels. The labels of its source come from the configuration instead."""


def document_time(document: Document) -> float | None:
    """Returns `published_at` of a document in Unix seconds (UTC by default), or else the time of its last change."""
    published = document.metadata.get("published_at")
    if isinstance(published, str):
        try:
            time = datetime.fromisoformat(published)
            return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            pass
    return document.modified_at


def passage_id(title: str, text: str) -> str:
    """Returns 32 hexadecimal digits that identify a passage's title and text.

    The title must not contain the separator U+0000. The daemon replaces it in titles, so different (title, text) pairs are
    hashed as different texts.
    """
    return blake2b(f"{title}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class PassageText:
    """A passage's content. Encoder and extractor receive `full`: title, newline, text."""

    id: str
    title: str
    text: str

    @property
    def full(self) -> str:
        return f"{self.title}\n{self.text}" if self.title else self.text


class ExtractionOutcome(StrEnum):
    """The outcome of the extraction of one passage."""

    DONE = "done"
    STAND_IN = "stand_in"
    """Triples of a quick extractor, used until the configured extractor has processed the passage."""
    FAILED = "failed"
    """The configured extractor failed on the passage; the triples come from a quick extractor, or there are none."""


@dataclass(frozen=True, slots=True)
class ExtractionState:
    """The extractor of a passage and the outcome, without the triples."""

    extractor: str
    status: ExtractionOutcome = ExtractionOutcome.DONE
    attempts: int = 0
    error: str | None = None

    @property
    def label(self) -> str:
        """The extractor's name for display."""
        return f"fallback:{self.extractor}" if self.status is ExtractionOutcome.STAND_IN else self.extractor


@lru_cache(maxsize=64)
def _shared_state(extractor: str, status: ExtractionOutcome) -> ExtractionState:
    """Returns the same object for all passages with the same extractor and outcome."""
    return ExtractionState(extractor, status)


ExtractionCosts = Mapping[str, tuple[int, int, int]]
"""By extractor: number of extractions, prompt tokens, completion tokens."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """The local extractor's result for one passage. `extractor` names model and prompt, so a call is never paid twice.

    Results of other extractors are stored in the document that supplied them (`PassageRef.triples`), because other documents
    may contain the passage too.
    """

    passage: str
    extractor: str
    entities: tuple[str, ...] = ()
    triples: tuple[Triple, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    took_ms: float = 0.0
    status: ExtractionOutcome = ExtractionOutcome.DONE
    attempts: int = 0
    """Number of failed attempts on the passage; 0 after a success."""
    error: str | None = None
    """Why the extraction failed: a sentence for users."""

    @property
    def state(self) -> ExtractionState:
        return extraction_state(self.extractor, self.status, self.attempts, self.error)


def extraction_state(extractor: str, status: str, attempts: int, error: str | None) -> ExtractionState:
    if status == ExtractionOutcome.FAILED:
        return ExtractionState(extractor, ExtractionOutcome.FAILED, attempts, error)
    return _shared_state(extractor, ExtractionOutcome(status))


@dataclass(frozen=True, slots=True)
class Batch:
    """The change of one commit: either all of it becomes visible, or none of it.

    - `documents` replace the documents with the same URIs; documents with `removed` URIs are removed.
    - `passages` and `extractions` are new to the store.
    - The three `*_vectors` map each text that `Store.missing` returned (a triple: its three parts) to its embedding.
    - `positions` are the sources' positions after this commit; None removes a key.
    - `supplied_costs` are the costs of the extractions that the documents supply.
    """

    documents: tuple[Document, ...] = ()
    removed: tuple[str, ...] = ()
    passages: tuple[PassageText, ...] = ()
    extractions: tuple[Extraction, ...] = ()
    passage_vectors: Mapping[str, "Vector"] = field(default_factory=dict)
    phrase_vectors: Mapping[str, "Vector"] = field(default_factory=dict)
    triple_vectors: Mapping[Triple, "Vector"] = field(default_factory=dict)
    positions: Mapping[str, Any | None] = field(default_factory=dict)
    supplied_costs: ExtractionCosts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """The encoder of the store's vectors; a store can be opened only with the same encoder."""

    name: str
    dim: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Thresholds that depend on an encoder's cosines. `weak_below`: if the nearest passage of a query has a lower cosine, the
    match is weak; None if this limit is unknown."""

    synonym_threshold: float
    weak_below: float | None


@dataclass(frozen=True, slots=True)
class SynonymRule:
    """The rule of `[graph]` for synonym edges: pairs with cosine >= `threshold` get an edge if their texts allow it."""

    threshold: float = 0.8
    variants: bool = True
    """Whether the texts must also be variants of one wording (`store.index.synonyms.phrase_variants`). If not, cosines alone
    decide, as in HippoRAG."""

    VERSION: ClassVar[int] = 7
    """Incremented whenever the rule changes which pairs become edges. The edges of a store with a lower version are recomputed
    (`store.change.synonym_change.settle_synonyms`)."""


DEFAULT_SYNONYM_RULE = SynonymRule()


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """The size of the memory as of one commit: numbers of living passages, phrases and triples (without mention edges). `time`
    is in Unix seconds."""

    commit: int
    time: float
    passages: int
    phrases: int
    triples: int
