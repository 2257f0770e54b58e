"""Brings the synonym edges that an earlier release's rules made to those of this one, as a store is opened."""

import numpy as np

from store.change.synonym_change import synonym_edges
from store.change.synonym_search import searcher
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.index.synonyms.edge_maintenance import plan_edges
from store.types import SynonymRule


def settle_synonyms(index: LiveIndex, rule: SynonymRule) -> IndexDelta:
    """The change after which the edges are those of a fresh build. Every phrase is searched for, as if it came now."""
    able = index.synonym_candidates() & ~index.crowding.rows.view().positive()
    unable = np.unique(synonym_edges(index, np.flatnonzero(~able))[0])
    found = plan_edges(
        unable,
        np.flatnonzero(able),
        len(index.phrases),
        lambda rows: synonym_edges(index, rows),
        searcher(index, able, rule),
    )
    return IndexDelta(synonyms=found)
