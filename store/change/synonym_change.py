"""Plans the synonym edges that a commit adds and removes, and the phrases that become crowded.

Two living phrases have a synonym edge (HippoRAG, section 2.2: "synonymy edges") if their cosine reaches the threshold, neither
is crowded (`store.index.synonyms.crowding`), their sketches collide (`store.index.synonyms.lsh`), and their texts allow it
(`store.index.synonyms.phrase_variants`). No edge depends on a third phrase. Therefore a removed phrase loses its edges, a new
phrase is compared with all others, and every order of arrival gives the same edges.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from store.fixed_point import floats, no_vectors, not_zero
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.index.synonyms.lsh import sketch
from store.index.synonyms.pairs import NO_PAIRS, Scored, SynonymChange
from store.index.synonyms.phrase_variants import pair_rule
from store.index.synonyms.search import can_have_synonyms, similar
from store.rows import Rows64

Mask = NDArray[np.bool_]


def plan_crowding(index: LiveIndex, delta: IndexDelta) -> tuple[Mask, Rows64, Rows64]:
    """Adds to `delta` which phrases become crowded, and which cease to be crowded, because phrases are added or removed.

    Returns the mask of phrases that can have synonyms afterwards, and the rows that lose and gain this ability (sorted). Reads
    and copies a few bytes per phrase of the index: less than a millisecond for three million phrases.
    """
    known, n = len(index.phrases), len(index.phrases) + len(delta.phrases)
    delta.phrase_sketches = sketch(floats(delta.phrase_vectors))
    present = np.zeros(n, np.bool_)
    present[:known] = index.synonym_candidates()
    rows, changes = delta.triple_change.phrases
    old, new = rows[rows < known], rows[rows >= known] - known
    able_old = index.can_have_synonyms.view()[old] & index.phrase_vectors.view().known[old]
    able_new = np.array([can_have_synonyms(delta.phrases[row]) for row in new.tolist()], np.bool_)
    living = index.counts["phrases"].at(rows) + changes > 0
    present_now = present.copy()
    present_now[rows] = living & np.concatenate([able_old, able_new & not_zero(delta.phrase_vectors[new])])
    arriving, leaving = rows[present_now[rows] & ~present[rows]], rows[present[rows] & ~present_now[rows]]
    crowded = index.crowding.mask(n)
    crowded_now = crowded.copy()
    if len(arriving) or len(leaving):
        sketches = index.sketches.signs(), delta.phrase_sketches
        delta.crowding = index.crowding.plan(*sketches, present_now, crowded, arriving, leaving)
        crowded_now[list(delta.crowding.rows)] = list(delta.crowding.rows.values())
    can = present_now & ~crowded_now
    concerned = np.union1d(rows, np.array(list(delta.crowding.rows), np.int64))
    before, after = present[concerned] & ~crowded[concerned], can[concerned]
    return can, concerned[before & ~after], concerned[after & ~before]


def plan_synonyms(index: LiveIndex, delta: IndexDelta) -> None:
    """Adds the changed synonym edges to `delta`: the edges of phrases that gain or lose the ability to have synonyms."""
    can, died, born = plan_crowding(index, delta)
    if len(died) or len(born):
        delta.synonyms = edge_change(index, can, died, born, delta)


def settle_synonyms(index: LiveIndex) -> IndexDelta:
    """Returns the change that replaces the synonym edges by those that a new index would have under the present rule.

    Searches for every phrase as if it were new.
    """
    able = index.synonym_candidates() & ~index.crowding.mask(len(index.phrases))
    unable = np.unique(synonym_edges(index, np.flatnonzero(~able))[0])
    return IndexDelta(synonyms=edge_change(index, able, unable, np.flatnonzero(able)))


def edge_change(
    index: LiveIndex, can: Mask, died: Rows64, born: Rows64, delta: IndexDelta | None = None
) -> SynonymChange:
    """Returns the change of the synonym edges when the phrases `died` lose the ability to have synonyms and the phrases `born`
    gain it. `died` and `born` are sorted rows.

    `can`: mask of the phrases that can have synonyms afterwards, including the new phrases of `delta`.
    """
    new, known = delta or IndexDelta(phrase_vectors=no_vectors(index.dim)), len(index.phrases)
    n = known + len(new.phrases)
    pairs = similar(
        index.phrase_vectors.view(),
        new.phrase_vectors,
        can,
        born,
        index.rule.threshold,
        index.sketches,
        through_bands=index.uses_bands,
        pair_rule=pair_rule(index.rule, lambda row: index.phrases[row] if row < known else new.phrases[row - known]),
        extra_sketches=new.phrase_sketches,
    )
    old_keys, old_weights = _by_key([synonym_edges(index, np.union1d(died, born))], n)
    new_keys, new_weights = _by_key(pairs if len(born) else (), n)
    keys = np.union1d(old_keys, new_keys)
    before, after = np.zeros(len(keys)), np.zeros(len(keys))
    before[np.searchsorted(keys, old_keys)] = old_weights
    after[np.searchsorted(keys, new_keys)] = new_weights
    changed = before != after
    a, b = np.divmod(keys[changed], n)
    return SynonymChange(a, b, after[changed], before[changed])


def _by_key(pieces: Iterable[Scored], n: int) -> tuple[Rows64, NDArray[np.float64]]:
    """Returns each pair once, encoded as (smaller row × n + larger row) and sorted, and the weights of the pairs."""
    a, b, weights = (np.concatenate(side) for side in zip(NO_PAIRS, *pieces, strict=True))
    keys, first = np.unique(np.minimum(a, b) * n + np.maximum(a, b), return_index=True)
    return keys, weights[first]


def synonym_edges(index: LiveIndex, rows: Rows64) -> Scored:
    """Returns all synonym edges of `rows`. New phrases have no edges yet."""
    a, b, weights = index.matrices["synonym"].view().entries(rows[rows < len(index.phrases)])
    return a.astype(np.int64), b.astype(np.int64), weights
