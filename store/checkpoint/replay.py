"""Applies the commits after a checkpoint, or after an index was loaded, as one change."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from store.change.plan import plan_without_synonyms
from store.change.synonym_change import synonym_edges
from store.index.live_index import LiveIndex
from store.index.synonyms.edge_maintenance import SynonymChange
from store.lance import schema
from store.lance.tables import TableView, after_commit
from store.types import Batch

INTERN_MIN_ROWS = 1_000
"""Minimum rows of `documents` for which interning their texts pays."""


def replay(index: LiveIndex, commit: int, tables: TableView, later: list[Mapping[str, Any]]) -> None:
    """Applies the commits after `commit`, whose rows of `documents` are `later`.

    One change suffices because the end state depends on the documents alone. The caller holds the write lock or is opening the
    store.
    """
    after = after_commit(commit)
    rows = tables.read_where("extractions", None, after).sort_by("commit").to_pylist()
    found = [schema.extractions.from_row(row) for row in rows]
    last = {row["uri"]: row for row in later}
    removed = tuple(uri for uri, row in last.items() if schema.documents.removes(row))
    # `str` returns the text itself: a few duplicates cost less than collecting all texts.
    interned: Callable[[str], str] = index.interner() if len(later) > INTERN_MIN_ROWS else str
    rest = (row for row in last.values() if not schema.documents.removes(row))
    documents = tuple(schema.documents.from_row(row, interned) for row in rest)
    if found or removed or documents:
        batch = Batch(documents, removed, extractions=tuple({e.passage: e for e in found}.values()))
        delta = plan_without_synonyms(index, batch, 0.0)
        # Keep the times of the original commits.
        delta.documents = list(documents)
        index.apply(delta)
    _change_synonyms(index, tables.read_where("synonyms", None, after).sort_by("commit"))


def _change_synonyms(index: LiveIndex, edges: Any) -> None:
    """Makes the edges those that the commits found: searching again would take as long as they did. `edges`: rows of
    `synonyms` in the order of their commits."""
    a, b, scores = schema.synonyms.from_table(edges, index.ids["phrases"].view())
    if not len(a):
        return
    # The last row of each pair counts. The keys are then sorted, as those of the present edges are.
    keys, from_the_end = np.unique((a * len(index.phrases) + b)[::-1], return_index=True)
    last = len(a) - 1 - from_the_end
    a, b, scores = a[last], b[last], scores[last]
    ones, others, weights = synonym_edges(index, a)
    there = np.append(ones * len(index.phrases) + others, np.iinfo(np.int64).max)
    places = np.searchsorted(there, keys)
    before = np.where(there[places] == keys, np.append(weights, 0.0)[places], 0.0)
    moved = np.flatnonzero(scores != before)
    index.change_synonyms(SynonymChange(a[moved], b[moved], scores[moved], before[moved]))
