"""The interfaces of retrieval: the encoder, the extractor, and the result of a query."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memory.explain.explanation import PassageExplanation
from store.types import EncoderIdentity, Extraction, PassageText

Matrix = NDArray[np.float32]
"""Embeddings, shape (n, dim), C-contiguous. Rows are L2-normalised, or zero if the encoder knows no word of the text."""


class Encoder(ABC):
    """Turns texts into vectors. Thread-safe. Queries have priority over indexing."""

    identity: EncoderIdentity
    passage_prefix: str | None = None
    """The configured prefix of texts to be indexed; None for an encoder without such a setting."""
    remote: bool = False
    """Whether the encoder may fail or be slow for reasons outside this process."""
    temperature_factor: float = 1.0
    """Multiplies `[retrieval] temperature`. It exceeds 1 if the encoder's cosines distinguish the best passage less than those
    of all-MiniLM-L6-v2."""
    start_error: str | None = None
    """Why the encoder's server did not answer the first request; None if it answered, or if there is no server."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Matrix:
        """Returns the vectors of texts to be indexed, in order. A text's vector does not depend on the other texts."""

    def encode_low_precision(self, texts: Sequence[str]) -> Matrix:
        """Encodes passages and triples, whose vectors are compared with queries only.

        These vectors decide no edge of the graph, so they may be less precise and faster (cosine with `encode` at least
        0.9999).
        """
        return self.encode(texts)

    @abstractmethod
    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Returns the vector of a query, shape (dim,); has priority over running indexing."""

    def begin_query(self, text: str) -> None:  # noqa: B027
        """Starts encoding a query, if the encoder can do so in the background; `encode_query` then waits for the vector."""

    def encode_triple_query(self, text: str) -> NDArray[np.float32]:
        """Returns the vector of a query for comparison with triples, shape (dim,)."""
        return self.encode_query(text)

    def encode_phrase_query(self, text: str, is_name: bool) -> NDArray[np.float32]:  # noqa: ARG002
        """Returns the vector of a query, or of a name in a query, for comparison with phrases, shape (dim,)."""
        return self.encode_query(text)

    def known_words(self, text: str) -> float:  # noqa: ARG002
        """Returns the share of a text's words that the encoder knows, from 0 to 1; 1 if the share is unknown."""
        return 1.0


class Extractor(Protocol):
    """OpenIE. `name` identifies model and prompt; it is the key of the extractions in the store."""

    @property
    def name(self) -> str: ...

    def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        """Returns one extraction for each passage, in order, with normalised phrases. Content never causes an exception."""
        ...


@dataclass(frozen=True, slots=True)
class LinkedTriple:
    """A triple to which the query was linked. `row`: its row in the snapshot. `kept`: whether recognition memory kept it.

    `score`: the similarity, scaled by the mode: min-max in `hipporag2`, standard deviations above the mean in `fused`.
    """

    row: int
    subject: str
    predicate: str
    object: str
    score: float
    kept: bool


@dataclass(frozen=True, slots=True)
class Seed:
    """A phrase at which the random walk restarts, and its reset weight (not normalised)."""

    row: int
    phrase: str
    weight: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved passage; `row` is its row in the snapshot."""

    row: int
    id: str
    title: str
    text: str
    score: float
    cosine: float | None = None
    """Cosine with the query; None if passages were compared by words."""
    versions: tuple[str, ...] = ()
    """Ids of older versions of this passage, newest first."""
    conflicting_values: tuple[str, ...] = ()
    """Words with a digit that some of the versions contain and others lack."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    query: str
    mode: str
    commit: int
    hits: tuple[Hit, ...]
    triples: tuple[LinkedTriple, ...] = ()
    seeds: tuple[Seed, ...] = ()
    note: str | None = None
    """Information for the user about this result (an empty filter, a fallback), if any."""
    stages_ms: Mapping[str, float] = field(default_factory=dict)
    """Duration of each stage in milliseconds."""
    best_cosine: float | None = None
    """Cosine of the query with the nearest passage of the memory, returned or not; None if passages were compared by words."""
    explanations: tuple[PassageExplanation, ...] = ()
    """Explanation of each hit, in order; empty if the query did not request them."""
