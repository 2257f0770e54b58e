"""Brings the synonym edges that an earlier release's rules made to those of this one, as a store is opened."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from store.change.synonym_change import synonym_edges
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.index.synonyms.edge_maintenance import SynonymChange, SynonymPlanner
from store.index.synonyms.nearest_pairs import Nearest, Rows, Scored, needed
from store.index.synonyms.search import Wanted, similar
from store.types import SynonymRule

EARLIER_SHORTEST = 2
"""Letters, digits and other characters up to which earlier releases gave a phrase no edges, whatever its script."""

Search = Callable[[Rows, Wanted], Iterator[Scored]]


def settle_synonyms(index: LiveIndex, rule: SynonymRule) -> IndexDelta | None:
    """The next change that is needed, None where there is none.

    Each follows from the present edges alone: should a start be cut short between two of them, the next start goes on.
    """
    able = index.synonym_candidates() & ~(index.crowding.rows.view().array() > 0)

    def search(rows: Rows, wanted: Wanted) -> Iterator[Scored]:
        vectors, none = index.phrase_vectors.view(), np.empty((0, index.dim), np.float32)
        sketches, bands = index.sketches, index.uses_bands
        wording = index.wordings.view().__getitem__
        return similar(
            vectors, none, able, rows, rule.threshold, sketches, wanted=wanted, through_bands=bands, wording=wording
        )

    change = _of_unable_phrases(index, rule, able, search) or _of_numbers(index, rule, search)
    change = change or _of_short_phrases(index, rule, able, search)
    return IndexDelta(synonyms=change) if change else None


def _of_unable_phrases(
    index: LiveIndex, rule: SynonymRule, able: NDArray[np.bool_], search: Search
) -> SynonymChange | None:
    """Ends the edges of phrases that can have no synonyms."""
    wrong = np.unique(synonym_edges(index, np.flatnonzero(~able))[0])
    if not len(wrong):
        return None
    return _planner(index, rule, search).plan(wrong, wrong[:0])


def _of_short_phrases(
    index: LiveIndex, rule: SynonymRule, able: NDArray[np.bool_], search: Search
) -> SynonymChange | None:
    """Makes the edges of phrases of one or two Chinese characters and the like, which had none before format 6 of snapshots."""
    rows = np.flatnonzero(able)
    short = [sum(map(str.isalnum, index.phrases[row])) <= EARLIER_SHORTEST for row in rows.tolist()]
    born = rows[np.array(short, np.bool_)]
    if not len(born):
        return None
    change = _planner(index, rule, search).plan(born[:0], born)
    return change if len(change.a) else None


def _planner(index: LiveIndex, rule: SynonymRule, search: Search) -> SynonymPlanner:
    text, needs = index.phrases.__getitem__, index.synonym_needs.view()
    return SynonymPlanner(rule.cap, len(index.phrases), text, lambda rows: synonym_edges(index, rows), search, needs)


def _of_numbers(index: LiveIndex, rule: SynonymRule, search: Search) -> SynonymChange | None:
    """Ends the edges between phrases that differ in numbers alone. Both ends are searched for anew, as others move up there;
    the nearest of everybody else stay as they are.
    """
    n, wordings = len(index.phrases), index.wordings.view()
    order = np.argsort(wordings, kind="stable")
    equal = wordings[order][1:] == wordings[order][:-1]
    shared = np.zeros(n, np.bool_)
    shared[order[1:][equal]] = shared[order[:-1][equal]] = True
    a, b, weights = synonym_edges(index, np.flatnonzero(shared))
    rows = np.unique(a[wordings[a] == wordings[b]])
    if not len(rows):
        return None
    anew = np.zeros(n, np.bool_)
    anew[rows] = True
    nearest = Nearest(rule.cap, index.phrases.__getitem__)
    for pairs in search(rows, Wanted(rule.cap, np.full(n, np.inf, np.float32))):
        nearest.add(*pairs)
    after = nearest.pairs()
    a, b, weights = synonym_edges(index, rows)
    others = Nearest(rule.cap, index.phrases.__getitem__)
    others.add(*synonym_edges(index, np.setdiff1d(b, rows)))
    kept = others.pairs()
    edges = {(min(x, y), max(x, y)): weight for x, y, weight in zip(*(part.tolist() for part in after), strict=True)}
    edges |= {
        (min(x, y), max(x, y)): weight
        for x, y, weight in zip(*(part.tolist() for part in kept), strict=True)
        if anew[x] or anew[y]
    }
    before = {
        (min(x, y), max(x, y)): weight for x, y, weight in zip(a.tolist(), b.tolist(), weights.tolist(), strict=True)
    }
    changed = sorted(pair for pair in edges.keys() | before.keys() if edges.get(pair) != before.get(pair))
    ends = np.array(changed, np.int64).reshape(-1, 2)
    now = np.zeros(n)
    full, needs = needed(after, rule.cap)
    now[full] = needs
    return SynonymChange(
        ends[:, 0],
        ends[:, 1],
        np.array([edges.get(pair, 0.0) for pair in changed]),
        np.array([before.get(pair, 0.0) for pair in changed]),
        rows,
        now[rows],
    )
