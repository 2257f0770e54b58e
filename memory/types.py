"""The interfaces of the retrieval method: the encoder, the extractor, and the result of a query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from memory.explain.explanation import PassageExplanation
from store.types import EncoderIdentity, Extraction, PassageText

Matrix = NDArray[np.float32]
"""Embeddings, shape (n, dim), C-contiguous. Rows are L2-normalised, or zero if the encoder knows no word of the text."""


class Encoder(Protocol):
    """Turns texts into vectors. Thread-safe; queries have priority over indexing."""

    @property
    def identity(self) -> EncoderIdentity: ...

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Returns the vectors of texts to be indexed, in order. A text's vector does not depend on the other texts."""
        ...

    def encode_low_precision(self, texts: Sequence[str]) -> Matrix:
        """Encodes passages and triples, whose vectors are compared with queries only.

        These vectors decide no edge of the graph, so precision may be traded for speed (cosine with `encode` at least 0.9999).
        """
        ...

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Returns the vector of one query, shape (dim,), with priority over running indexing."""
        ...


@runtime_checkable
class TripleQueryEncoder(Protocol):
    """An encoder with a separate instruction for finding triples."""

    def encode_triple_query(self, text: str) -> NDArray[np.float32]:
        """Returns the vector of one query for comparison with triples, shape (dim,). `encode_query` is for all other
        comparisons."""
        ...


def triple_query_vector(encoder: Encoder, text: str, vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns the query's vector for comparison with triples: `vector` from `encode_query`, unless the encoder has its own."""
    return encoder.encode_triple_query(text) if isinstance(encoder, TripleQueryEncoder) else vector


@runtime_checkable
class PhraseQueryEncoder(Protocol):
    """An encoder that has instructions of its own for finding phrases."""

    def encode_phrase_query(self, text: str, is_name: bool) -> NDArray[np.float32]:
        """The vector of a query, or of a name in a query, for comparison with phrases, shape (dim,)."""
        ...


def phrase_query_vector(
    encoder: Encoder, text: str, is_name: bool, vector: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """The vector of a query, or of a name in one, for comparison with phrases: that of `encode_query` (`vector`, if it is
    known), unless the encoder has another."""
    if isinstance(encoder, PhraseQueryEncoder):
        return encoder.encode_phrase_query(text, is_name)
    return encoder.encode_query(text) if vector is None else vector


@runtime_checkable
class WordKnowledge(Protocol):
    """An encoder that can say which share of a text's words it knows."""

    def known_words(self, text: str) -> float:
        """Returns the share of a text's words that are in the model's vocabulary, from 0 to 1."""
        ...


def known_words(encoder: Encoder, text: str) -> float:
    """Returns the share of a text's words that the encoder knows; 1 if the encoder cannot say."""
    return encoder.known_words(text) if isinstance(encoder, WordKnowledge) else 1.0


@runtime_checkable
class PrefixedEncoder(Protocol):
    """An encoder that puts a configured prefix before texts to be indexed."""

    @property
    def passage_prefix(self) -> str: ...


def passage_prefix(encoder: Encoder) -> str | None:
    """The configured prefix of texts to be indexed; None of an encoder that has no such setting."""
    return encoder.passage_prefix if isinstance(encoder, PrefixedEncoder) else None


@runtime_checkable
class RemoteEncoder(Protocol):
    """An encoder that may fail to answer, or take long, for a reason outside this process."""

    remote: bool


def is_remote(encoder: Encoder) -> bool:
    return isinstance(encoder, RemoteEncoder) and encoder.remote


class Extractor(Protocol):
    """OpenIE. `name` identifies model and prompt; the store keeps extractions under it."""

    @property
    def name(self) -> str: ...

    def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        """Returns one extraction for each passage, in order, with normalised phrases. A passage's content never causes an
        exception."""
        ...


@dataclass(frozen=True, slots=True)
class LinkedTriple:
    """A triple that the query was linked to. `row`: its row in the snapshot. `kept`: whether it passed the filter.

    `score`: the similarity as scaled by the mode: min-max in `hipporag2`, standard deviations above the mean in `fused`.
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
    """Cosine with the query; None if passages were compared by words."""
    versions: tuple[str, ...] = ()
    """Ids of the passages that are older versions of this one, newest first."""
    conflicting_values: tuple[str, ...] = ()
    """Words with a digit that some of the versions contain and others lack."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The result of a query on one commit."""

    query: str
    mode: str
    commit: int
    hits: tuple[Hit, ...]
    triples: tuple[LinkedTriple, ...] = ()
    seeds: tuple[Seed, ...] = ()
    note: str | None = None
    """Information for the user about this result (an empty filter, a fallback), if any."""
    stages_ms: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds by stage."""
    best_cosine: float | None = None
    """Cosine of the query with the nearest passage of the memory, found or not; None if passages were compared by words."""
    explanations: tuple[PassageExplanation, ...] = ()
    """Reasons for each hit, in order; empty if the query did not request them."""
