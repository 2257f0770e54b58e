"""Updates synonym edges made by an earlier release's rules to the rules of this release, when a store is opened."""

import numpy as np

from store.change.synonym_change import synonym_edges
from store.change.synonym_search import searcher
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.index.synonyms.edge_maintenance import SynonymPlanner
from store.types import SynonymRule


def settle_synonyms(index: LiveIndex, rule: SynonymRule) -> IndexDelta:
    """Returns the change that gives the edges of a fresh build. Searches for every phrase as if it were new."""
    able = index.synonym_candidates() & ~index.crowding.rows.view().positive()
    planner = SynonymPlanner(
        rule.cap,
        len(index.phrases),
        index.phrases.__getitem__,
        lambda rows: synonym_edges(index, rows),
        searcher(index, able, rule),
        index.synonym_needs.view(),
    )
    unable = np.unique(synonym_edges(index, np.flatnonzero(~able))[0])
    return IndexDelta(synonyms=planner.plan(unable, np.flatnonzero(able)))
