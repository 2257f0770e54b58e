"""What every way of retrieval is given, and what it gives back."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memory.types import Encoder, LinkedTriple, Seed
from store.snapshot import Snapshot
from store.types import Triple
from store.walk import Walk

Floats = NDArray[np.float64]

K_MOST = 1_000_000_000
"""More passages than there are."""


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """`[retrieval]`. Defaults are the paper's (HippoRAG 2, appendix on implementation) where it has them."""

    top_triples: int = 5
    seed_phrases: int = 5
    passage_weight: float = 0.05
    damping: float = 0.5
    passage_nodes: bool = True
    """False leaves the passages out of the walk and ranks them by their phrases (the paper's Table 4)."""
    passage_share: float = 0.5
    """`fused` only: share of the reset probability that goes to passages."""
    name_share: float = 0.25
    """`fused` only: share of what falls on phrases that goes to those the query names."""
    temperature: float = 0.25
    """`fused` only: of the softmax over similarities, in their standard deviations."""


class Recognition(Protocol):
    """Recognition memory: which of the linked triples matter to the query (HippoRAG 2, section 3.3)."""

    def keep(self, query: str, triples: Sequence[Triple]) -> Sequence[int]:
        """Indices into `triples` of those to keep, possibly none."""
        ...


class Asked:
    """One query on one snapshot. What several steps need is worked out once, when first asked for."""

    def __init__(
        self,
        snapshot: Snapshot,
        encoder: Encoder,
        query: str,
        settings: RetrievalSettings,
        recognition: Recognition | None = None,
        k: int = K_MOST,
    ) -> None:
        self.snapshot = snapshot
        self.encoder = encoder
        self.query = query
        self.settings = settings
        self.recognition = recognition
        self.k = k
        """How many passages are asked for: further ones need no exact order."""
        self.stages_ms: dict[str, float] = {}

    @cached_property
    def vector(self) -> NDArray[np.float32]:
        """The query's embedding, shape (dim,)."""
        with self.stage("encode"):
            return self.encoder.encode_query(self.query)

    @cached_property
    def similarities(self) -> NDArray[np.float32]:
        """Cosine of every passage with the query, shape (n_passages,)."""
        vector = self.vector
        with self.stage("passages"):
            return self.snapshot.passage_vectors.scores(vector)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Counts the time spent inside under `name`, in milliseconds."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.stages_ms[name] = self.stages_ms.get(name, 0.0) + (time.perf_counter() - began) * 1000


@dataclass(frozen=True, slots=True)
class Walked:
    """A random walk that was made. `reset` and `ranks` have shape (nodes,), phrases first; `reset` is not normalised."""

    walk: Walk
    reset: Floats
    ranks: Floats
    damping: float
    through_phrases: bool
    """Whether a passage's score is the sum over its phrases' ranks rather than the rank of its own node."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Scores of all passages, shape (n_passages,), and how they came about. Only those `among` are answers, if given."""

    scores: NDArray[np.floating]
    among: NDArray[np.bool_] | None = None
    triples: tuple[LinkedTriple, ...] = ()
    seeds: tuple[Seed, ...] = ()
    note: str | None = None
    walked: Walked | None = None
    is_dense: bool = False
    """Whether the scores are the cosines themselves."""
