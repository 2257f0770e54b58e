"""The synonym edges that a commit adds and removes, and the phrases that become crowded."""

from collections.abc import Iterator

import numpy as np

from store.change.row_numbers import RowNumbers
from store.fixed_point import floats, not_zero
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.index.synonyms.changed_flags import ChangedFlags, Flags, OneWithoutOther, among, unchanged
from store.index.synonyms.edge_maintenance import plan_edges
from store.index.synonyms.lsh import sketch
from store.index.synonyms.pairs import Rows, Scored
from store.index.synonyms.phrase_variants import pair_rule
from store.index.synonyms.search import linkable, similar
from store.types import SynonymRule


def plan_crowding(index: LiveIndex, delta: IndexDelta) -> tuple[Flags, Rows, Rows]:
    """Computes, for `delta`, which phrases become crowded and which cease to be, as phrases are added and removed.

    Returns the phrases that can have synonyms after the change, the rows that lose this ability and the rows that gain it, each
    ascending.
    """
    known = len(index.phrases)
    delta.phrase_sketches = sketch(floats(delta.phrase_vectors))
    linkable_new = not_zero(delta.phrase_vectors) & np.array([linkable(text) for text in delta.phrases], np.bool_)
    came: list[int] = []
    went: list[int] = []
    linkable_known, with_vector = index.linkable.view(), index.phrase_vectors.view().known
    for row, change in sorted(delta.phrase_changes.items()):
        held = index.phrase_counts[row] if row < known else 0
        if not change or not (linkable_known[row] and with_vector[row] if row < known else linkable_new[row - known]):
            continue
        if held == 0:
            came.append(row)
        elif held + change == 0:
            went.append(row)
    arriving, leaving = np.array(came, np.int64), np.array(went, np.int64)
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


def plan_synonyms(index: LiveIndex, delta: IndexDelta, numbers: RowNumbers, rule: SynonymRule) -> None:
    """Adds the changed synonym edges to `delta`: those of phrases that gain or lose the ability to have synonyms."""
    can, died, born = plan_crowding(index, delta)
    if not len(died) and not len(born):
        return
    known, total = len(index.phrases), len(index.phrases) + len(delta.phrases)
    new_text = {row: text for text, row in numbers.phrases.items()}

    def text(row: int) -> str:
        return index.phrases[row] if row < known else new_text[row]

    by_texts = pair_rule(rule, text)

    def search(rows: Rows) -> Iterator[Scored]:
        return similar(
            index.phrase_vectors.view(),
            delta.phrase_vectors,
            can,
            rows,
            rule.threshold,
            index.sketches,
            through_bands=index.uses_bands,
            pair_rule=by_texts,
            extra_sketches=delta.phrase_sketches,
        )

    delta.synonyms = plan_edges(died, born, total, lambda rows: synonym_edges(index, rows), search)


def synonym_edges(index: LiveIndex, rows: Rows) -> Scored:
    """Returns all synonym edges of `rows`. New rows have none."""
    view = index.synonym.view(index.shape("synonym"))
    a, b, weights = view.entries(rows[rows < len(index.phrases)])
    return a.astype(np.int64), b.astype(np.int64), weights
