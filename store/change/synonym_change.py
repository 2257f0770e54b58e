"""Plans the synonym edges that a commit adds and removes, and the phrases that become crowded."""

from collections.abc import Iterator

import numpy as np

from store.fixed_point import floats, no_vectors, not_zero
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.index.synonyms.changed_flags import ChangedFlags, Flags, OneWithoutOther, among, unchanged
from store.index.synonyms.edge_maintenance import SynonymChange, plan_edges
from store.index.synonyms.lsh import sketch
from store.index.synonyms.pairs import Rows, Scored
from store.index.synonyms.phrase_variants import pair_rule
from store.index.synonyms.search import can_have_synonyms, similar


def plan_crowding(index: LiveIndex, delta: IndexDelta) -> tuple[Flags, Rows, Rows]:
    """Adds to `delta` which phrases become crowded, and which cease to be crowded, because phrases are added or removed.

    Returns the mask of phrases that can have synonyms afterwards, and the rows that lose and gain this ability (sorted).
    """
    known = len(index.phrases)
    delta.phrase_sketches = sketch(floats(delta.phrase_vectors))
    new_ones = not_zero(delta.phrase_vectors) & np.array([can_have_synonyms(text) for text in delta.phrases], np.bool_)
    rows, changes = delta.triple_change.phrases
    old = rows[rows < known]
    old_ones = index.can_have_synonyms.view()[old] & index.phrase_vectors.view().known[old]
    can_have = np.concatenate([old_ones, new_ones[rows[len(old) :] - known]])
    held = index.counts["phrases"].at(rows)
    arriving, leaving = rows[can_have & (held == 0)], rows[can_have & (held > 0) & (held + changes == 0)]
    moved = np.union1d(arriving, leaving)
    present, crowded = index.present_phrases(), index.crowding.flags
    present_now = ChangedFlags(present, moved, among(moved, arriving))
    if len(moved):
        sketches, crowded_then = index.sketches.signs(), unchanged(crowded)
        delta.crowding = index.crowding.plan(
            sketches, delta.phrase_sketches, present_now, crowded_then, arriving, leaving
        )
    turned = sorted(delta.crowding.rows)
    crowded_now = ChangedFlags(
        crowded, np.array(turned, np.int64), np.array([delta.crowding.rows[row] for row in turned], np.bool_)
    )
    could, can = OneWithoutOther(unchanged(present), unchanged(crowded)), OneWithoutOther(present_now, crowded_now)
    concerned = np.union1d(moved, crowded_now.rows)
    before, after = could[concerned], can[concerned]
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


def edge_change(index: LiveIndex, can: Flags, died: Rows, born: Rows, delta: IndexDelta | None = None) -> SynonymChange:
    """Returns the change of the synonym edges when the phrases `died` lose the ability to have synonyms and the phrases `born`
    gain it. `died` and `born` are sorted rows.

    `can`: mask of the phrases that can have synonyms afterwards, including the new phrases of `delta`.
    """
    new, known = delta or IndexDelta(phrase_vectors=no_vectors(index.dim)), len(index.phrases)
    by_texts = pair_rule(index.rule, lambda row: index.phrases[row] if row < known else new.phrases[row - known])

    def search(rows: Rows) -> Iterator[Scored]:
        return similar(
            index.phrase_vectors.view(),
            new.phrase_vectors,
            can,
            rows,
            index.rule.threshold,
            index.sketches,
            through_bands=index.uses_bands,
            pair_rule=by_texts,
            extra_sketches=new.phrase_sketches,
        )

    return plan_edges(died, born, known + len(new.phrases), lambda rows: synonym_edges(index, rows), search)


def synonym_edges(index: LiveIndex, rows: Rows) -> Scored:
    """Returns all synonym edges of `rows`. New phrases have no edges yet."""
    a, b, weights = index.matrices["synonym"].view().entries(rows[rows < len(index.phrases)])
    return a.astype(np.int64), b.astype(np.int64), weights
