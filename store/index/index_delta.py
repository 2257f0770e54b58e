"""The change that one commit makes to the live index, computed before anything is written (`store.change.plan`)."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from store.fixed_point import Fixed, no_vectors
from store.index.columns.hashed_rows import TripleKey
from store.index.effective_triples import SuppliedTriples
from store.index.synonyms.crowding import CrowdingChange
from store.index.synonyms.lsh import WORDS, Sketches
from store.index.synonyms.pairs import SynonymChange
from store.index.triple_change import NO_CHANGE, NO_ENTRIES, CountChange, Entries, TripleChange
from store.types import Document, Extraction, PassageText


@dataclass(slots=True)
class IndexDelta:
    """Added and removed contents, and changes of counts and edges. Each of the `*_vectors` has one row for each added text."""

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
    holders: dict[int, dict[str, SuppliedTriples]] = field(default_factory=dict)
    passage_counts: CountChange = NO_CHANGE
    triple_change: TripleChange = field(default_factory=TripleChange)
    names: list[str] = field(default_factory=list)
    naming: Entries = NO_ENTRIES
    crowding: CrowdingChange = field(default_factory=CrowdingChange)
    synonyms: SynonymChange = field(default_factory=SynonymChange)
