"""The change of one commit to the live index, computed before anything is written (`store.change.plan`)."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from store.fixed_point import Fixed, no_vectors
from store.index.effective_triples import UpstreamTriples
from store.index.synonyms.crowding import CrowdingChange
from store.index.synonyms.edge_maintenance import SynonymChange
from store.index.synonyms.lsh import WORDS, Sketches
from store.types import Document, Extraction, PassageText

TripleKey = tuple[int, str, int]
"""(subject's phrase row, predicate, object's phrase row)."""


@dataclass(slots=True)
class IndexDelta:
    """Added and removed contents, and the changes of counts and edges.

    The `*_vectors` have one row for each added text. The `*_changes` map rows to what is added to their counts. Edge changes
    are lists of (row, column, weight added).
    """

    passages: list[PassageText] = field(default_factory=list)
    passage_vectors: Fixed = field(default_factory=lambda: no_vectors(0))
    phrases: list[str] = field(default_factory=list)
    phrase_vectors: Fixed = field(default_factory=lambda: no_vectors(0))
    phrase_sketches: Sketches = field(default_factory=lambda: np.empty((0, WORDS), np.uint64))
    triples: list[TripleKey] = field(default_factory=list)
    triple_vectors: Fixed = field(default_factory=lambda: no_vectors(0))
    extractions: list[Extraction] = field(default_factory=list)
    extracted: dict[int, NDArray[np.int32]] = field(default_factory=dict)
    documents: list[Document] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    holders: dict[int, dict[str, UpstreamTriples]] = field(default_factory=dict)
    effective: dict[int, NDArray[np.int32]] = field(default_factory=dict)
    passage_changes: dict[int, int] = field(default_factory=dict)
    phrase_changes: dict[int, int] = field(default_factory=dict)
    triple_changes: dict[int, int] = field(default_factory=dict)
    relation: list[tuple[int, int, float]] = field(default_factory=list)
    mention: list[tuple[int, int, float]] = field(default_factory=list)
    context: list[tuple[int, int, float]] = field(default_factory=list)
    incidence: list[tuple[int, int, float]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    naming: list[tuple[int, int, float]] = field(default_factory=list)
    crowding: CrowdingChange = field(default_factory=CrowdingChange)
    synonyms: SynonymChange = field(default_factory=SynonymChange)
