"""Updates an index to the last commit of the tables. The index is either new or from a checkpoint.

The rows of all commits in between are applied as one change, because the resulting state depends only on the documents.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.change.plan import plan_triples
from store.change.synonym_change import plan_crowding, synonym_edges
from store.errors import IncompleteBatch
from store.index.file_arrays import ArrayStorage
from store.index.index_delta import IndexDelta
from store.index.live_index import KINDS, LiveIndex
from store.index.synonyms.pairs import SynonymChange
from store.lance.last_rows import last_of_each, last_rows
from store.lance.schema import documents, extractions, passages, phrases, synonyms, triples
from store.lance.schema.vectors import VECTOR_COLUMNS, vectors_of
from store.lance.tables import Condition, TableView, after_commit
from store.rows import Rows64
from store.types import DEFAULT_SYNONYM_RULE, Batch, SynonymRule

TEXTS = {
    "passages": passages.TEXT_COLUMNS,
    "phrases": phrases.TEXT_COLUMNS,
    "triples": triples.TEXT_COLUMNS,
}
"""The columns of each table except its vectors."""

APPLIED_ROWS = 16_384
"""Number of rows applied at a time."""

OnRows = Callable[[int], None]
"""A callback that receives the number of rows of passages, phrases and triples read so far."""

FillVectors = Callable[[LiveIndex, TableView, Mapping[str, int], OnRows], None]
"""Appends the vectors of all rows from a given number on (by table). The index must already have the texts of these rows."""


def append_vectors(index: LiveIndex, tables: TableView, first: Mapping[str, int], on_rows: OnRows) -> None:
    """The `FillVectors` that copies the vectors from the tables."""
    read = 0
    for name, array in index.vectors.items():
        # Vectors are most of a store's bytes, so each batch is copied to its place immediately: only one copy is in memory.
        for batch in tables.batches(name, ("row", *VECTOR_COLUMNS), from_row(first[name])):
            places = np.searchsorted(index.ids[name].view(), batch["row"].to_numpy())
            array.put(places, vectors_of(batch))
            read += batch.num_rows
            on_rows(read)


def from_row(first: int) -> Condition:
    return Condition("row", ">=", first)


def load_index(tables: TableView, dim: int, rule: SynonymRule) -> LiveIndex:
    """Returns the index of the tables."""
    index = load_index_for_reading(tables, dim, rule=rule)
    index.sketch_phrases()
    index.count_crowds()
    return index


def load_index_for_reading(
    tables: TableView,
    dim: int,
    on_rows: OnRows = lambda _rows: None,
    fill_vectors: FillVectors = append_vectors,
    rule: SynonymRule = DEFAULT_SYNONYM_RULE,
) -> LiveIndex:
    """Returns the index of the tables without the data that only planning a commit needs."""
    index = LiveIndex(dim, ArrayStorage(tables.folder), rule)
    append_contents(index, tables, dict.fromkeys(KINDS, 0), on_rows, fill_vectors)
    replay(index, tables, 0, crowds=False)
    index.extracted.compact()
    for matrix in index.matrices.values():
        matrix.fold()
    return index


def append_contents(
    index: LiveIndex,
    tables: TableView,
    first: Mapping[str, int],
    on_rows: OnRows = lambda _rows: None,
    fill_vectors: FillVectors = append_vectors,
) -> None:
    """Appends the passages, phrases and triples whose column `row` is at least `first[table]`. Does not sketch the phrases."""

    def rows(name: str) -> Any:
        return tables.read(name, TEXTS[name], from_row(first[name])).sort_by("row")

    tables_by_name = {name: rows(name) for name in KINDS}
    table = tables_by_name["passages"]
    index.add_passages(passages.from_table(table), table["row"].to_numpy())
    table = tables_by_name["phrases"]
    index.add_phrases(phrases.from_table(table), table["row"].to_numpy())
    table = tables_by_name["triples"]
    ends, predicates = triples.from_table(table, index.ids["phrases"].view())
    keys = zip(ends[:, 0].tolist(), predicates, ends[:, 1].tolist(), strict=True)
    index.add_triples(list(keys), table["row"].to_numpy())
    for rows_of_kind in index.hashed_rows.values():
        if rows_of_kind.due:
            rows_of_kind.fold()
    for name, table in tables_by_name.items():
        if table.num_rows:
            index.next_id[name] = int(table["row"][-1].as_py()) + 1
    del table, tables_by_name
    fill_vectors(index, tables, first, on_rows)
    for name, array in index.vectors.items():
        if array.n != index.ids[name].n:
            raise ValueError(f"the table {name} has {index.ids[name].n} rows and {array.n} vectors")


def replay(index: LiveIndex, tables: TableView, after: int, crowds: bool = True) -> None:
    """Updates `index` from commit `after` to the last commit. The index must already contain all texts.

    `crowds`: whether the index knows the crowded phrases.
    """

    def apply(batch: Batch) -> None:
        delta = plan_again(index, batch)
        if crowds:
            plan_crowding(index, delta)
        index.change_documents(delta)

    for part in _parts(last_of_each(rows_after(tables, "extractions", after), "passage")):
        apply(Batch(extractions=tuple(extractions.without_costs(part))))
    for part in _parts(last_of_each(rows_after(tables, "documents", after), "uri")):
        apply(documents_of(part))
    edges = rows_after(tables, "synonyms", after).sort_by("commit")
    set_synonyms(index, *synonyms.from_table(edges, index.ids["phrases"].view()))


def plan_again(index: LiveIndex, batch: Batch) -> IndexDelta:
    """Returns the change that a committed batch made, without synonym edges. Documents keep the times at which they were
    committed. Raises LookupError if the index lacks a text."""
    try:
        delta = plan_triples(index, batch, 0.0)
    except IncompleteBatch as error:
        raise LookupError(f"the tables lack a text: {error}") from error
    delta.documents = list(batch.documents)
    return delta


def rows_after(tables: TableView, name: str, commit: int, columns: Sequence[str] | None = None) -> Any:
    """Returns the rows of the commits after `commit`."""
    return tables.read(name, columns, after_commit(commit))


def documents_of(rows: Any) -> Batch:
    """Returns a batch that sets documents to the states in these rows of the table `documents`."""
    known: dict[str, str] = {}  # documents repeat the same phrases
    there, gone = [], []
    for row in rows.to_pylist():
        if documents.removes(row):
            gone.append(row["uri"])
        else:
            there.append(documents.from_row(row, lambda text: known.setdefault(text, text)))
    return Batch(tuple(there), tuple(gone))


def _parts(table: Any) -> Iterator[Any]:
    for start in range(0, table.num_rows, APPLIED_ROWS):
        yield table.slice(start, APPLIED_ROWS).combine_chunks()


def set_synonyms(index: LiveIndex, a: Rows64, b: Rows64, scores: NDArray[np.float64]) -> None:
    """Sets the synonym edges between phrases to recorded `scores`; searching for the edges again would take as long as in the
    original commits. Score 0 removes an edge. If a pair occurs more than once, its last score counts."""
    n = len(index.phrases)
    last = last_rows(a * n + b)
    a, b, scores = a[last], b[last], scores[last]
    ones, others, weights = synonym_edges(index, a)
    there = np.append(ones * n + others, np.iinfo(np.int64).max)
    places = np.searchsorted(there, a * n + b)
    before = np.where(there[places] == a * n + b, np.append(weights, 0.0)[places], 0.0)
    moved = np.flatnonzero(scores != before)
    index.change_synonyms(SynonymChange(a[moved], b[moved], scores[moved], before[moved]))
