"""Undoes the latest commits in a copy of the live index, which then is the memory as of an earlier commit.

The state depends only on the documents, so all commits are undone as one change. Documents that have not changed since the
earlier commit remain. The tables contain the earlier states of the changed documents, and of extractions and synonym edges.
"""

import numpy as np
import pyarrow as pa

from store.change.load import documents_of, plan_again, rows_after, set_synonyms
from store.change.plan import plan_passages, plan_removal
from store.change.synonym_change import plan_crowding
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.lance.schema import extractions, synonyms
from store.lance.tables import TableView, until_commit
from store.types import Batch, Pause, no_pause


def rewind(index: LiveIndex, tables: TableView, commit: int, pause: Pause = no_pause) -> None:
    """Reverts `index`, a copy of the index of these tables, to an earlier commit.

    Takes O(changes since that commit) time, plus a few operations on arrays as long as the index. Raises LookupError or
    ValueError if a purge has removed a row.
    """

    def apply(delta: IndexDelta) -> None:
        pause()
        plan_crowding(index, delta)
        pause()
        index.change_documents(delta)
        pause()

    changed = rows_after(tables, "documents", commit, ("uri",))["uri"].unique()
    pause()
    if len(changed):
        uris = frozenset(changed.to_pylist())
        apply(plan_removal(index, {uri: each for uri, each in index.documents.items() if uri not in uris}))
        for part in tables.rows_until("documents", commit, "uri", changed):
            pause()
            apply(plan_again(index, documents_of(part)))
    ids = rows_after(tables, "extractions", commit, ("passage",))["passage"].unique()
    pause()
    rows = {id: row for id in ids.to_pylist() if (row := index.passage_rows.get(id)) is not None}
    # An extraction matters only if a document contains its passage.
    unread = {id: row for id, row in rows.items() if index.holders[row]}
    if unread:
        for part in tables.rows_until("extractions", commit, "passage", pa.array(list(unread))):
            batch = Batch(extractions=tuple(extractions.without_costs(part)))
            apply(plan_again(index, batch))
            for extraction in batch.extractions:
                del unread[extraction.passage]
        apply(_without_extractions(index, list(unread.values())))
    _rewind_synonyms(index, tables, commit, pause)
    pause()


def _without_extractions(index: LiveIndex, passages: list[int]) -> IndexDelta:
    """Removes the extractions of passages (rows) and returns the resulting change."""
    for row in passages:
        index.extracted[row] = None
        index.extraction_states.pop(row, None)
    return plan_passages(index, {row: index.holders[row] for row in passages})


def _rewind_synonyms(index: LiveIndex, tables: TableView, commit: int, pause: Pause) -> None:
    """Sets the synonym edges that changed since `commit` to their earlier weights. The phrases must be as of that commit."""
    phrases = index.ids["phrases"].view()
    a, b, _ = synonyms.from_table(rows_after(tables, "synonyms", commit), phrases)
    changed = np.unique(a * len(phrases) + b)
    a, b = np.divmod(changed, len(phrases))
    pause()
    alive = index.counts["phrases"].view().positive()
    edges = [(a, b, np.zeros(len(a)))]
    if (alive[a] & alive[b]).any():
        there = tables.read("synonyms", None, until_commit(commit)).sort_by("commit")
        pause()
        a, b, scores = synonyms.from_table(there, phrases)
        among = np.isin(a * len(phrases) + b, changed)
        edges.append((a[among], b[among], scores[among]))
    set_synonyms(index, *(np.concatenate(each) for each in zip(*edges, strict=True)))
