"""Brings the synonym edges that an earlier release's rules made to those of this one, as a store is opened."""

from collections.abc import Iterator

import numpy as np

from store.change.synonym_change import synonym_edges
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.index.synonyms.edge_maintenance import SynonymPlanner
from store.index.synonyms.nearest_pairs import Rows, Scored
from store.index.synonyms.search import Wanted, similar
from store.types import SynonymRule


def settle_synonyms(index: LiveIndex, rule: SynonymRule) -> IndexDelta:
    """The change after which the edges are those of a fresh build. Every phrase is searched for, as if it came now."""
    able = index.synonym_candidates() & ~(index.crowding.rows.view().array() > 0)

    def search(rows: Rows, wanted: Wanted) -> Iterator[Scored]:
        vectors, none = index.phrase_vectors.view(), np.empty((0, index.dim), np.float32)
        sketches, bands = index.sketches, index.uses_bands
        wording = index.wordings.view().__getitem__
        return similar(
            vectors, none, able, rows, rule.threshold, sketches, wanted=wanted, through_bands=bands, wording=wording
        )

    planner = SynonymPlanner(
        rule.cap,
        len(index.phrases),
        index.phrases.__getitem__,
        lambda rows: synonym_edges(index, rows),
        search,
        index.synonym_needs.view(),
    )
    unable = np.unique(synonym_edges(index, np.flatnonzero(~able))[0])
    return IndexDelta(synonyms=planner.plan(unable, np.flatnonzero(able)))
