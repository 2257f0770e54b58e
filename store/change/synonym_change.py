"""Which synonym edges a commit makes and takes away, and which phrases become crowded."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from store.change.row_numbers import RowNumbers
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.index.synonyms.edge_maintenance import SynonymPlanner
from store.index.synonyms.lsh import sketch
from store.index.synonyms.nearest_pairs import Rows, Scored
from store.index.synonyms.search import Wanted, linkable, similar, wordings
from store.types import SynonymRule


def plan_synonyms(index: LiveIndex, delta: IndexDelta, numbers: RowNumbers, rule: SynonymRule) -> None:
    """Which phrases come to have synonyms and which cease to, as they come and go and as the places about them fill."""
    known, total = len(index.phrases), len(index.phrases) + len(delta.phrases)
    new_text = {row: text for text, row in numbers.phrases.items()}
    extra = np.stack(delta.phrase_vectors) if delta.phrases else np.empty((0, index.dim), np.float32)
    extra_sketches = sketch(extra)
    linkable_new = extra.any(axis=1) & np.array([linkable(text) for text in delta.phrases], np.bool_)
    came: list[int] = []
    went: list[int] = []
    linkable_known, with_vector = index.linkable.view(), index.phrase_vectors.view().known
    for row, change in sorted(delta.phrase_changes.items()):
        before = index.phrase_counts[row] if row < known else 0
        if not change or not (linkable_known[row] and with_vector[row] if row < known else linkable_new[row - known]):
            continue
        if before == 0:
            came.append(row)
        elif before + change == 0:
            went.append(row)
    if not came and not went:
        return
    arriving, leaving = np.array(came, np.int64), np.array(went, np.int64)
    present = np.zeros(total, np.bool_)
    present[:known] = index.present_phrases()
    crowded = index.crowding.flags(total)
    could = present & ~crowded
    present[leaving] = False
    present[arriving] = True
    delta.crowding = index.crowding.plan(index.sketches.view(), extra_sketches, present, crowded, arriving, leaving)
    crowded[list(delta.crowding.rows)] = np.array(list(delta.crowding.rows.values()), np.bool_)
    can = present & ~crowded

    def text(row: int) -> str:
        return index.phrases[row] if row < known else new_text[row]

    new_wordings = wordings(delta.phrases)

    def wording(rows: Rows) -> Rows:
        out, old = np.empty(len(rows), np.int64), rows < known
        out[old], out[~old] = index.wordings.view()[rows[old]], new_wordings[rows[~old] - known]
        return out

    def search(rows: Rows, wanted: Wanted) -> Iterator[Scored]:
        vectors, sketches, bands = index.phrase_vectors.view(), index.sketches, index.uses_bands
        return similar(
            vectors, extra, can, rows, rule.threshold, sketches, wanted=wanted, through_bands=bands, wording=wording
        )

    needs = _NeedsAfter(index.synonym_needs.view())
    planner = SynonymPlanner(rule.cap, total, text, lambda rows: synonym_edges(index, rows), search, needs)
    delta.synonyms = planner.plan(np.flatnonzero(could & ~can), np.flatnonzero(can & ~could))


@dataclass(frozen=True, slots=True)
class _NeedsAfter:
    """`store.index.synonyms.edge_maintenance.SynonymPlanner.needs` of known phrases, and 0 for the new ones behind them."""

    known: NDArray[np.float32]

    def __getitem__(self, part: slice, /) -> NDArray[np.float32]:
        out = np.zeros(part.stop - part.start, np.float32)
        known = self.known[part]
        out[: len(known)] = known
        return out


def synonym_edges(index: LiveIndex, rows: Rows) -> Scored:
    """All synonym edges of `rows`; those that are new have none."""
    view = index.synonym.view(index.shape("synonym"))
    a, b, weights = view.entries(rows[rows < len(index.phrases)])
    return a.astype(np.int64), b.astype(np.int64), weights
