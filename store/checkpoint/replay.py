"""Applies the commits that came after a checkpoint, or after an index was loaded, as one change."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from store.change.plan import plan
from store.index.live_index import LiveIndex
from store.lance import schema
from store.lance.tables import Tables
from store.types import Batch, SynonymRule

INTERN_MIN_ROWS = 1_000
"""Rows of `documents` for which it pays to intern their texts."""


def replay(index: LiveIndex, commit: int, tables: Tables, rule: SynonymRule, later: list[Mapping[str, Any]]) -> None:
    """Applies the commits after `commit`, whose rows of `documents` are `later`.

    As one change: the end state is a function of the documents alone. The caller holds the write lock, or opens the store.
    """
    after = f"commit > {commit}"
    rows = tables.read_where("extractions", None, after).sort_by("commit").to_pylist()
    found = [schema.extractions.from_row(row) for row in rows]
    last = {row["uri"]: row for row in later}
    removed = tuple(uri for uri, row in last.items() if schema.documents.removes(row))
    # `str` returns a text as it is: a few copies cost less than going through all texts.
    interned: Callable[[str], str] = index.interner() if len(later) > INTERN_MIN_ROWS else str
    rest = (row for row in last.values() if not schema.documents.removes(row))
    documents = tuple(schema.documents.from_row(row, interned) for row in rest)
    if not (found or removed or documents):
        return
    delta = plan(index, Batch(documents, removed, extractions=tuple({e.passage: e for e in found}.values())), rule, 0.0)
    # They keep the times of their own commits.
    delta.documents = list(documents)
    index.apply(delta)
    pairs = tables.read_where("synonyms", None, after).sort_by("commit")
    a, b, scores = schema.synonyms.from_table(pairs, index.ids["phrases"].view())
    wanted = dict(zip(zip(a.tolist(), b.tolist(), strict=True), scores.tolist(), strict=True))
    if not wanted:
        return
    # Where synonyms are searched approximately, the table has the last word.
    rows, cols, weights = index.synonym.view(index.shape("synonym")).entries(
        np.array(sorted({pair[0] for pair in wanted}))
    )
    there = dict(zip(zip(rows.tolist(), cols.tolist(), strict=True), weights.tolist(), strict=True))
    moves = [(x, y, score - there.get((x, y), 0.0)) for (x, y), score in wanted.items()]
    moves = [move for move in moves if move[2]]
    if moves:
        x, y, by = (np.array(part) for part in zip(*moves, strict=True))
        index.synonym.add(np.concatenate([x, y]), np.concatenate([y, x]), np.concatenate([by, by]))
