"""What travels into the store: plain values, no behaviour.

A passage's identity is its content (`store.passage_id.passage_id`), a phrase's its normalised text, a triple's its three
normalised parts. Texts arrive here already normalised; the store never changes a text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Triple = tuple[str, str, str]
"""(subject, predicate, object), each normalised."""

MENTION = ""
"""The predicate of a mention edge: a triple that says only that its two ends stand near each other. It has no vector."""

Vector = NDArray[np.float32]
"""One embedding, shape (dim,), L2-normalised; zero for a text of which the encoder knows nothing."""


def is_statement(triple: Triple) -> bool:
    """Whether a triple says something of its ends. Otherwise it is a mention edge."""
    return triple[1] != MENTION


class State(StrEnum):
    """Where a document stands; every document is in exactly one state."""

    PENDING = "pending"
    INDEXED = "indexed"
    FAILED = "failed"
    SKIPPED = "skipped"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Link:
    """A link as its author wrote it: the target (a path, a name, an address), the heading in it, and the words shown.

    `store.links` says which document it leads to.
    """

    target: str
    heading: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class PassageRef:
    """A document's use of a passage: which one, where it stood, and triples that came with the document."""

    passage: str
    location: Mapping[str, Any] = field(default_factory=dict)
    triples: tuple[Triple, ...] | None = None
    """Triples that the document supplies, as they were found before it came here; `None` if the local extractor is to read the
    passage. They belong to the document (`store.index.effective_triples`)."""
    extractor: str | None = None
    """The extractor that found `triples`, if they came in a record (docs/reference/records.md); `None` if the document states
    them."""
    links: tuple[Link, ...] = ()
    """The links that the document has in the passage and in the headings above it. Another document with the same passage may
    have others: a relative path leads elsewhere from there."""


@dataclass(frozen=True, slots=True)
class Omission:
    """Content of a document's file that none of its passages contains: a word for the kind, a number, a sentence for people."""

    kind: str
    count: int
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """One document as it stands after a commit. `passages` are in reading order."""

    uri: str
    source: str
    title: str = ""
    state: State = State.INDEXED
    error: str | None = None
    """Why it is failed or skipped: a sentence for people."""
    code: str | None = None
    """The same as one of a few fixed words, by which failures are counted."""
    attempts: int = 0
    next_try: float | None = None
    """Unix seconds of the next try of a failed document, `None` when it waits for `retry`."""
    modified_at: float | None = None
    committed_at: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    passages: Sequence[PassageRef] = ()
    payload: str | None = None
    """What must be kept to index a pending or failed document that has no file behind it (JSON)."""
    left_out: tuple[Omission, ...] = ()


LABELS = "labels"
"""The key of a document's metadata that holds its own labels. Those of its source follow from the configuration."""


@dataclass(frozen=True, slots=True)
class PassageText:
    """A passage's content. What is embedded and extracted from is `title + "\\n" + text` (`full`)."""

    id: str
    title: str
    text: str

    @property
    def full(self) -> str:
        return f"{self.title}\n{self.text}" if self.title else self.text


class ExtractionOutcome(StrEnum):
    """What became of reading one passage."""

    DONE = "done"
    STAND_IN = "stand_in"
    """A quick extractor's triples, in use until the configured extractor has read the passage."""
    FAILED = "failed"
    """The configured extractor could not read the passage; the triples are those of a stand-in, or none."""


@dataclass(frozen=True, slots=True)
class ExtractionState:
    """Who read a passage and what became of it: an extraction without what was found."""

    extractor: str
    status: ExtractionOutcome = ExtractionOutcome.DONE
    attempts: int = 0
    error: str | None = None

    @property
    def label(self) -> str:
        """The extractor's name as people see it."""
        return f"fallback:{self.extractor}" if self.status is ExtractionOutcome.STAND_IN else self.extractor


@lru_cache(maxsize=64)
def _shared_state(extractor: str, status: ExtractionOutcome) -> ExtractionState:
    """One object for the many passages that one extractor has read."""
    return ExtractionState(extractor, status)


ExtractionCosts = Mapping[str, tuple[int, int, int]]
"""By extractor: how many extractions, prompt tokens and completion tokens."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What the local extractor found in one passage. `extractor` names model and prompt, so that a call is never paid twice.

    What was found elsewhere is in the document that brought it (`PassageRef.triples`), as other documents may hold the passage.
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
    """How often the extractor has failed on the passage, 0 where it has read it."""
    error: str | None = None
    """Why it failed: a sentence for people."""

    @property
    def state(self) -> ExtractionState:
        return extraction_state(self.extractor, self.status, self.attempts, self.error)


def extraction_state(extractor: str, status: str, attempts: int, error: str | None) -> ExtractionState:
    if status == ExtractionOutcome.FAILED:
        return ExtractionState(extractor, ExtractionOutcome.FAILED, attempts, error)
    return _shared_state(extractor, ExtractionOutcome(status))


@dataclass(frozen=True, slots=True)
class Batch:
    """One commit's worth of change: all of it becomes visible, or none.

    `documents` replace what stands under their URIs; `removed` URIs go; `passages` and `extractions` are those the store
    does not hold yet; the three `*_vectors` map text (a triple: its three parts) to its embedding for everything that
    `Store.missing` named. `positions` are where the sources stand once this is committed (`None` forgets a key).
    `supplied_costs` is what the extractions cost that the documents supply.
    """

    documents: tuple[Document, ...] = ()
    removed: tuple[str, ...] = ()
    passages: tuple[PassageText, ...] = ()
    extractions: tuple[Extraction, ...] = ()
    passage_vectors: Mapping[str, Vector] = field(default_factory=dict)
    phrase_vectors: Mapping[str, Vector] = field(default_factory=dict)
    triple_vectors: Mapping[Triple, Vector] = field(default_factory=dict)
    positions: Mapping[str, Any | None] = field(default_factory=dict)
    supplied_costs: ExtractionCosts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """Which encoder made the store's vectors; a store opens only with the one that made it."""

    name: str
    dim: int


@dataclass(frozen=True, slots=True)
class SynonymRule:
    """`[graph]`: pairs with cosine >= `threshold` are synonyms if their texts allow it."""

    threshold: float = 0.8
    variants: bool = True
    """Whether the texts must also be variants of one wording (`store.index.synonyms.phrase_variants`). Without, cosines alone
    decide, as in HippoRAG."""

    VERSION: ClassVar[int] = 6
    """Goes up when other pairs become edges than before, by what is in `store.index.synonyms`: the edges of a store that says a
    smaller number are made anew (`store.change.settle_synonyms`)."""


DEFAULT_SYNONYM_RULE = SynonymRule()


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """How large the memory was as of one commit: counts of what lives. `time` is in Unix seconds."""

    commit: int
    time: float
    passages: int
    phrases: int
    triples: int
