"""Updates synonym edges made by an earlier release's rules, or with other settings, when a store is opened."""

import numpy as np

from store.change.synonym_change import synonym_edges
from store.change.synonym_search import searcher
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.index.synonyms.edge_maintenance import SynonymChange, SynonymPlanner
from store.index.synonyms.nearest_pairs import NO_PAIRS
from store.types import SynonymRule


def settle_synonyms(index: LiveIndex, rule: SynonymRule) -> IndexDelta:
    """Returns the change that gives the edges of a fresh build. Searches for every phrase as if it were new."""
    count = len(index.phrases)
    able = index.synonym_candidates() & ~index.crowding.rows.view().positive()
    planner = SynonymPlanner(
        rule.cap,
        count,
        index.phrases.__getitem__,
        lambda _rows: NO_PAIRS,
        searcher(index, able, rule),
        np.zeros(count, np.float32),
    )
    return IndexDelta(synonyms=_instead_of_present(index, planner.plan(NO_PAIRS[0], np.flatnonzero(able))))


def _instead_of_present(index: LiveIndex, fresh: SynonymChange) -> SynonymChange:
    """The change from the present edges to those of `fresh`."""
    count = len(index.phrases)
    a, b, weights = synonym_edges(index, np.arange(count))
    once = a < b
    keys = np.concatenate([fresh.a * count + fresh.b, (a * count + b)[once]])
    unique, places = np.unique(keys, return_inverse=True)
    new, old = np.zeros(len(unique)), np.zeros(len(unique))
    new[places[: len(fresh.a)]] = fresh.weights
    old[places[len(fresh.a) :]] = weights[once]
    moved = new != old
    needs = np.zeros(count)
    needs[fresh.rows] = fresh.needs
    return SynonymChange(unique[moved] // count, unique[moved] % count, new[moved], old[moved], np.arange(count), needs)
