"""The method's interfaces: the encoder and the extractor that it calls, and the result of a query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from memory.explain.explanation import PassageExplanation
from store.types import EncoderIdentity, Extraction, PassageText

Matrix = NDArray[np.float32]
"""Embeddings, shape (n, dim), C-contiguous. Rows are L2-normalised; zero for a text of which the encoder knows nothing."""


class Encoder(Protocol):
    """Turns texts into vectors. Thread-safe; a query goes before indexing."""

    @property
    def identity(self) -> EncoderIdentity: ...

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Vectors of texts to be indexed, in order. A text's vector does not depend on the other texts."""
        ...

    def encode_roughly(self, texts: Sequence[str]) -> Matrix:
        """As `encode`, but for passages and triples, whose vectors are compared with queries only.

        They decide no edge of the graph, so precision may be traded for speed (cosine with `encode` at least 0.9999).
        """
        ...

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """The vector of one query, shape (dim,). It goes before any indexing under way."""
        ...


@runtime_checkable
class TripleQueryEncoder(Protocol):
    """An encoder that has an instruction of its own for finding triples."""

    def encode_triple_query(self, text: str) -> NDArray[np.float32]:
        """The vector of one query for comparison with triples, shape (dim,); `encode_query`'s is for all else."""
        ...


def triple_query_vector(encoder: Encoder, text: str, vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """The query's vector for comparison with triples: `vector`, that of `encode_query`, unless the encoder has another."""
    return encoder.encode_triple_query(text) if isinstance(encoder, TripleQueryEncoder) else vector


@runtime_checkable
class WordKnowledge(Protocol):
    """An encoder that can say how much of a text it has words for."""

    def known_words(self, text: str) -> float:
        """The share of a text's words that the model knows as words, from 0 to 1."""
        ...


def known_words(encoder: Encoder, text: str) -> float:
    """The share of a text's words that the encoder knows; 1 of one that cannot say."""
    return encoder.known_words(text) if isinstance(encoder, WordKnowledge) else 1.0


@runtime_checkable
class PrefixedEncoder(Protocol):
    """An encoder that puts a configured prefix before texts to be indexed."""

    @property
    def passage_prefix(self) -> str: ...


def passage_prefix(encoder: Encoder) -> str | None:
    """The configured prefix of texts to be indexed; None of an encoder that has no such setting."""
    return encoder.passage_prefix if isinstance(encoder, PrefixedEncoder) else None


class Extractor(Protocol):
    """OpenIE. `name` identifies model and prompt; the store keeps extractions under it."""

    @property
    def name(self) -> str: ...

    def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        """One extraction per passage, in order, with normalised phrases. Never raises because of a passage's content."""
        ...


@dataclass(frozen=True, slots=True)
class LinkedTriple:
    """A triple that the query was linked to. `row`: in the snapshot. `kept`: passed the filter.

    `score`: the similarity as the mode scales it, min-max in `hipporag2`, in standard deviations above the mean in `fused`.
    """

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
    cosine: float | None = None
    """With the query; None where passages were compared by words."""
    versions: tuple[str, ...] = ()
    """Ids of the passages that are older versions of this one, newest first."""
    conflicting_values: tuple[str, ...] = ()
    """Words with a digit that some of the versions have and others lack."""


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
    """What a user should know about this answer (an empty filter, a fallback), if anything."""
    stages_ms: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds spent, by stage."""
    best_cosine: float | None = None
    """Of the query with the nearest passage of the memory, found or not; None where passages were compared by words."""
    explanations: tuple[PassageExplanation, ...] = ()
    """Why each hit was found, in order; empty if the query did not ask for it."""
