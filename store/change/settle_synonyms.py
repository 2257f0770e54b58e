"""Updates synonym edges made by an earlier release's rules, or with other settings, when a store is opened."""

import numpy as np

from store.change.synonym_change import synonym_edges
from store.change.synonym_search import searcher
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.index.synonyms.edge_maintenance import plan_edges
from store.types import SynonymRule


def settle_synonyms(index: LiveIndex, rule: SynonymRule) -> IndexDelta:
    """Returns the change that gives the edges of a fresh build. Searches for every phrase as if it were new."""
    count = len(index.phrases)
    able = index.synonym_candidates() & ~index.crowding.rows.view().positive()
    unable = np.unique(synonym_edges(index, np.flatnonzero(~able))[0])
    found = plan_edges(
        unable, np.flatnonzero(able), count, lambda rows: synonym_edges(index, rows), searcher(index, able, rule)
    )
    return IndexDelta(synonyms=found)
