"""What the method needs and gives: the two models it calls, and what a query answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memory.explain.explanation import PassageExplanation
from store.types import EncoderIdentity, Extraction, PassageText

Matrix = NDArray[np.float32]
"""Embeddings, shape (n, dim), C-contiguous. Rows are L2-normalised, but for texts of which the encoder knows nothing: zero."""


class Encoder(Protocol):
    """Turns texts into vectors. Thread-safe; a query overtakes indexing."""

    @property
    def identity(self) -> EncoderIdentity: ...

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Vectors of texts to be indexed, in the order given. A text's vector does not depend on its neighbours."""
        ...

    def encode_roughly(self, texts: Sequence[str]) -> Matrix:
        """As `encode`, for texts whose vectors only queries are compared with: passages and triples.

        Digits may be given up for speed here (cosine with `encode` at least 0.9999): they decide no edge of the graph.
        """
        ...

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """The vector of one query, shape (dim,), ahead of any indexing under way."""
        ...


class Extractor(Protocol):
    """OpenIE. `name` identifies model and prompt (an extraction is kept under it)."""

    @property
    def name(self) -> str: ...

    def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        """One extraction a passage, in order, with normalised phrases. Never raises for a passage's content."""
        ...


@dataclass(frozen=True, slots=True)
class LinkedTriple:
    """A triple that the query was linked to. `row` is its row in the snapshot; `score` its min-max-scaled similarity."""

    row: int
    subject: str
    predicate: str
    object: str
    score: float
    kept: bool


@dataclass(frozen=True, slots=True)
class Seed:
    """A phrase that the random walk restarts at, with its reset weight (before normalising)."""

    row: int
    phrase: str
    weight: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One retrieved passage; `row` is its row in the snapshot."""

    row: int
    id: str
    title: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A query's answer from one commit."""

    query: str
    mode: str
    commit: int
    hits: tuple[Hit, ...]
    triples: tuple[LinkedTriple, ...] = ()
    seeds: tuple[Seed, ...] = ()
    note: str | None = None
    """What a user should know about how the answer came about (an empty filter, a fallback), if anything."""
    stages_ms: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds spent, by stage."""
    explanations: tuple[PassageExplanation, ...] = ()
    """Why each hit was found, in order; empty where the query did not ask."""
