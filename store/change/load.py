"""Brings an index to a commit of the tables: a new index, an index from a checkpoint, or one of an earlier commit.

The rows of all commits in between are applied as one change, because the end state depends on the documents alone.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow.compute as pc

from store.change.plan import plan_statements
from store.change.synonym_change import plan_crowding, synonym_edges
from store.errors import IncompleteBatch
from store.index.file_arrays import ArrayStorage
from store.index.live_index import KINDS, LiveIndex
from store.index.synonyms.edge_maintenance import SynonymChange
from store.lance.schema import documents, extractions, passages, phrases, synonyms, triples
from store.lance.schema.vectors import VECTOR_COLUMNS, vectors_of
from store.lance.tables import Condition, TableView, after_commit
from store.types import DEFAULT_SYNONYM_RULE, Batch, SynonymRule

TEXTS = {
    "passages": passages.TEXT_COLUMNS,
    "phrases": phrases.TEXT_COLUMNS,
    "triples": triples.TEXT_COLUMNS,
}
"""The columns of each table except its vectors."""

CONVERTED_ROWS = 256
"""Rows that are converted to Python objects at a time: about 5 ms during which no other thread runs."""

APPLIED_ROWS = 16_384
"""Rows that are applied at a time if nothing else waits."""

Pause = Callable[[], None]
"""Called every few milliseconds during long work to let other threads run."""


def no_pause() -> None:
    """The `Pause` of work that delays nothing else."""


OnRows = Callable[[int], None]
"""Called with the number of rows of passages, phrases and triples that were read."""


class FillVectors(Protocol):
    """Appends the vectors of the rows from `first` (by table) on. The index has their texts already."""

    def __call__(self, index: LiveIndex, tables: TableView, first: Mapping[str, int], on_rows: OnRows) -> None: ...


def _ignore_rows(_rows: int) -> None:
    """The `OnRows` that ignores the numbers."""


def append_vectors(index: LiveIndex, tables: TableView, first: Mapping[str, int], on_rows: OnRows) -> None:
    """The `FillVectors` that copies the vectors from the tables."""
    read = 0
    for name, array in index.vectors.items():
        # Vectors are most of a store. Each batch is copied to its place as it is read, so that only one copy is in memory.
        for batch in tables.batches(name, ("row", *VECTOR_COLUMNS), from_row(first[name])):
            places = np.searchsorted(index.ids[name].view(), batch["row"].to_numpy())
            array.put(places, vectors_of(batch))
            read += batch.num_rows
            on_rows(read)


def from_row(first: int) -> Condition:
    return Condition("row", ">=", first)


def load_index(tables: TableView, dim: int, rule: SynonymRule) -> LiveIndex:
    """Returns the index of the present tables."""
    index = load_index_for_reading(tables, dim, rule=rule)
    index.sketch_phrases()
    index.count_crowds()
    return index


def load_index_for_reading(
    tables: TableView,
    dim: int,
    commit: int | None = None,
    on_rows: OnRows = _ignore_rows,
    fill_vectors: FillVectors = append_vectors,
    rule: SynonymRule = DEFAULT_SYNONYM_RULE,
) -> LiveIndex:
    """Returns the index of the present tables, or as of `commit`, without the data that planning a commit needs."""
    index = LiveIndex(dim, ArrayStorage(tables.folder), rule)
    append_contents(index, tables, dict.fromkeys(KINDS, 0), on_rows, fill_vectors)
    fill_index(index, tables, commit)
    return index


def fill_index(index: LiveIndex, tables: TableView, commit: int | None, pause: Pause | None = None) -> None:
    """Gives an index without documents those of the last commit, or of `commit`, and all that follows from them except crowds.

    O(documents and edges); no vector is read. Commits may continue concurrently.
    """
    replay(index, tables, 0, commit, pause, crowds=False)
    index.effective.compact()
    index.extracted.compact()
    for matrix in index.matrices.values():
        matrix.fold()


def append_contents(
    index: LiveIndex,
    tables: TableView,
    first: Mapping[str, int],
    on_rows: OnRows = _ignore_rows,
    fill_vectors: FillVectors = append_vectors,
) -> None:
    """Appends the passages, phrases and triples whose column `row` is at least `first` (by table). Does not sketch phrases."""

    def rows(name: str) -> Any:
        return tables.read_where(name, TEXTS[name], from_row(first[name])).sort_by("row")

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


def replay(
    index: LiveIndex,
    tables: TableView,
    after: int,
    up_to: int | None = None,
    pause: Pause | None = None,
    crowds: bool = True,
) -> None:
    """Brings `index`, which is as of commit `after` and has all contents, to the last commit or to `up_to`.

    `crowds`: whether the index knows the crowded phrases.
    """

    def apply(batch: Batch) -> None:
        try:
            delta = plan_statements(index, batch, 0.0)
        except IncompleteBatch as error:
            raise LookupError(f"the tables lack a text: {error}") from error
        if crowds:
            plan_crowding(index, delta)
        # Documents keep the times of their commits.
        delta.documents = list(batch.documents)
        index.change_documents(delta)

    for part in _parts(rows_between(tables, "extractions", after, up_to, "passage"), pause):
        apply(Batch(extractions=tuple(extractions.without_costs(part))))
    known: dict[str, str] = {}
    for part in _parts(rows_between(tables, "documents", after, up_to, "uri"), pause):
        rows = part.to_pylist()
        # Documents repeat the same phrases.
        there = (
            documents.from_row(row, lambda text: known.setdefault(text, text))
            for row in rows
            if not documents.removes(row)
        )
        apply(Batch(tuple(there), tuple(row["uri"] for row in rows if documents.removes(row))))
    _replay_synonyms(index, rows_between(tables, "synonyms", after, up_to))


def rows_between(tables: TableView, name: str, after: int, up_to: int | None, key: str | None = None) -> Any:
    """Returns the rows of the commits after `after` until `up_to`, in commit order; of each `key` the last one."""
    table = tables.read_where(name, None, after_commit(after))
    if up_to is not None:
        table = table.filter(pc.field("commit") <= up_to)
    table = table.sort_by("commit")
    return table if key is None else table.take(last_rows(codes_of(table[key])))


def codes_of(texts: Any) -> Any:
    """Returns a number for each text; equal texts have equal numbers."""
    return pc.dictionary_encode(texts).combine_chunks().indices.to_numpy()


def last_rows(keys: Any) -> Any:
    """Returns the index of the last occurrence of each key, ascending."""
    _, from_the_end = np.unique(keys[::-1], return_index=True)
    return np.sort(len(keys) - 1 - from_the_end)


def _parts(table: Any, pause: Pause | None) -> Iterator[Any]:
    """Yields the table in parts, and pauses after each."""
    size = APPLIED_ROWS if pause is None else CONVERTED_ROWS
    for start in range(0, table.num_rows, size):
        yield table.slice(start, size).combine_chunks()
        if pause is not None:
            pause()


def _replay_synonyms(index: LiveIndex, edges: Any) -> None:
    """Makes the edges those that the commits found: searching again would take as long as they did. `edges`: rows of
    `synonyms` in the order of their commits."""
    n = len(index.phrases)
    a, b, scores = synonyms.from_table(edges, index.ids["phrases"].view())
    last = last_rows(a * n + b)
    a, b, scores = a[last], b[last], scores[last]
    ones, others, weights = synonym_edges(index, a)
    there = np.append(ones * n + others, np.iinfo(np.int64).max)
    places = np.searchsorted(there, a * n + b)
    before = np.where(there[places] == a * n + b, np.append(weights, 0.0)[places], 0.0)
    moved = np.flatnonzero(scores != before)
    index.change_synonyms(SynonymChange(a[moved], b[moved], scores[moved], before[moved]))
