"""Builds the live index from the tables, as of now or of an earlier commit."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from store.index.columns.row_lists import NO_ROWS, RowLists
from store.index.effective_triples import supplied_triples, upstream_triples
from store.index.file_arrays import ArrayStorage
from store.index.live_index import LiveIndex
from store.lance.schema import documents, extractions, passages, phrases, synonyms, triples
from store.lance.schema.vectors import VECTOR_COLUMNS, vectors_of
from store.lance.tables import Condition, TableView
from store.links.names import names_text
from store.types import DEFAULT_SYNONYM_RULE, SynonymRule

TEXTS = {
    "passages": passages.TEXT_COLUMNS,
    "phrases": phrases.TEXT_COLUMNS,
    "triples": triples.TEXT_COLUMNS,
}
"""The columns of each table except its vectors."""

RESTED_ROWS = 1024
"""Rows, of a few microseconds each, after which loading may rest."""

CONVERTED_ROWS = 256
"""Rows that are converted to Python objects at a time: about 5 ms during which no other thread runs."""


Rest = Callable[[], None]
"""Called every few milliseconds during long work to let other threads run."""


def no_rest() -> None:
    """The `Rest` of work that delays nothing else."""


OnRows = Callable[[int], None]
"""Called with the number of rows of passages, phrases and triples that were read."""


class FillVectors(Protocol):
    """Appends the vectors of rows whose texts the index has already. `first`: the first row number, by table."""

    def __call__(self, index: LiveIndex, tables: TableView, first: Mapping[str, int], on_rows: OnRows) -> None: ...


def _nobody_counts(_rows: int) -> None:
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
    on_rows: OnRows = _nobody_counts,
    fill_vectors: FillVectors = append_vectors,
    rule: SynonymRule = DEFAULT_SYNONYM_RULE,
) -> LiveIndex:
    """Returns the index of the present tables, or as of `commit`, without the data that planning a commit needs."""
    index = LiveIndex(dim, ArrayStorage(tables.folder), rule)
    append_contents(index, tables, dict.fromkeys(index.next_id, 0), on_rows, fill_vectors)
    _fill(index, tables, commit)
    return index


def load_past_index(then: LiveIndex, tables: TableView, commit: int, rest: Rest) -> LiveIndex:
    """Fills `then` (`LiveIndex.without_documents`) with the documents as of `commit`, resting in between.

    O(documents and edges); no vector is read. Commits may continue concurrently.
    """
    _fill(then, tables, commit, rest)
    return then


def _fill(index: LiveIndex, tables: TableView, commit: int | None, rest: Rest = no_rest) -> None:
    found = _last_extractions(rows_up_to(tables.read("extractions"), commit), rest)
    rest()
    for batch in found.to_batches(CONVERTED_ROWS):
        _extractions(index, batch)
        rest()
    index.extracted = RowLists(index.extracted.arrays())
    known = index.interner()
    rest()
    table = rows_up_to(tables.read("documents"), commit)
    rest()
    for batch in table.to_batches(CONVERTED_ROWS):
        for row in batch.to_pylist():
            _document(index, row, known)
        rest()
    derive_graph(index, rest)
    rest()
    _synonyms(index, rows_up_to(tables.read("synonyms"), commit))
    rest()


def rows_up_to(table: Any, commit: int | None) -> Any:
    """Returns the table's rows in the order of their commits, without rows after `commit`."""
    if commit is not None:
        table = table.filter(pc.field("commit") <= commit)
    return table.sort_by("commit")


def append_contents(
    index: LiveIndex,
    tables: TableView,
    first: Mapping[str, int],
    on_rows: OnRows = _nobody_counts,
    fill_vectors: FillVectors = append_vectors,
) -> None:
    """Appends the passages, phrases and triples whose column `row` is at least `first` (by table). Does not sketch phrases."""

    def rows(name: str) -> Any:
        return tables.read_where(name, TEXTS[name], from_row(first[name])).sort_by("row")

    tables_by_name = {"passages": rows("passages"), "phrases": rows("phrases"), "triples": rows("triples")}
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


def _last_extractions(table: Any, rest: Rest) -> Any:
    """Returns the last row of each passage. The triples of earlier rows may have been purged."""
    last: dict[str, int] = {}
    first = 0
    for batch in table.select(["passage"]).to_batches(RESTED_ROWS):
        passages = batch["passage"].to_pylist()
        last.update(zip(passages, range(first, first + len(passages)), strict=True))
        first += len(passages)
        rest()
    return table if len(last) == table.num_rows else table.take(np.array(sorted(last.values()), np.int64))


def _extractions(index: LiveIndex, batch: Any) -> None:
    for passage, state, found in extractions.states_and_triples(batch):
        row = index.passage_rows.get(passage)
        if row is not None:
            index.extracted[row] = rows_of(index, found)
            index.extraction_states[row] = state


def rows_of(index: LiveIndex, triples: Any) -> NDArray[np.int32]:
    keys = {(index.phrase_rows[s], p, index.phrase_rows[o]) for s, p, o in triples}
    return np.array(sorted(index.triple_rows[key] for key in keys), np.int32) if keys else NO_ROWS


def _document(index: LiveIndex, row: dict[str, Any], known: Callable[[str], str]) -> None:
    """Applies one row of `documents`. Rows come in commit order: a later row replaces an earlier one."""
    if documents.removes(row):
        index.documents.pop(row["uri"], None)
        return
    index.documents[row["uri"]] = documents.from_row(row, known)


def derive_graph(index: LiveIndex, rest: Rest = no_rest) -> None:
    """Derives holders, effective triples, counts and edges (`connect`) from the documents and extractions."""
    for number, document in enumerate(index.documents.values(), 1):
        for passage, triples_brought in upstream_triples(document).items():
            index.holders[index.passage_rows[passage]][document.uri] = triples_brought
        if number % RESTED_ROWS == 0:
            rest()
    for row, holders in enumerate(index.holders):
        if row % RESTED_ROWS == 0:
            rest()
        if not holders:
            continue
        if (supplied := supplied_triples(holders)) is not None:
            index.effective[row] = rows_of(index, supplied)
        else:
            found = index.extracted[row]
            index.effective[row] = found if found is not None else NO_ROWS
    connect(index)
    _derive_names(index, rest)


def _derive_names(index: LiveIndex, rest: Rest) -> None:
    """Derives the names of passages from the documents that contain them."""
    named: list[tuple[int, int]] = []
    for number, document in enumerate(index.documents.values(), 1):
        if document.passages and (text := names_text(document)):
            row = index.name_rows.get(text)
            if row is None:
                row = len(index.names)
                index.add_names([text])
            named += [(row, index.passage_rows[id]) for id in {ref.passage for ref in document.passages}]
        if number % RESTED_ROWS == 0:
            rest()
    rows, passages = np.array(named, np.int64).reshape(-1, 2).T
    naming = _csr(np.ones(len(rows)), rows, passages, (len(index.names), len(index.passages)))
    index.adopt_naming(naming)


def connect(index: LiveIndex) -> None:
    """Derives counts and edges, except synonym edges, from the holders and effective triples of the passages."""
    lists = index.effective.arrays()
    index.effective = RowLists(lists)
    starts, stated = lists.starts, lists.rows
    staters = np.repeat(np.arange(lists.n, dtype=np.int32), np.diff(starts))
    n_phrases, n_passages, n_triples = len(index.phrases), len(index.passages), len(index.predicates)
    ends = index.triple_ends.view()

    passage_counts = index.holders.sizes()
    triple_counts = np.bincount(stated, minlength=n_triples).astype(np.int32)
    # The triple rows of a passage ascend.
    incidence = sparse.csr_array((np.ones(len(stated)), stated, starts), shape=(n_passages, n_triples))
    index.incidence.adopt(incidence, 0)
    subjects, objects = ends[stated, 0], ends[stated, 1]
    apart = subjects != objects
    is_statement = index.statements.view()[stated]
    for matrix, of_kind in ((index.relation, apart & is_statement), (index.mention, apart & ~is_statement)):
        ones, others = subjects[of_kind], objects[of_kind]
        pairs = np.concatenate([ones, others]), np.concatenate([others, ones])
        matrix.adopt(_csr(np.ones(len(pairs[0])), *pairs, (n_phrases, n_phrases)), 0)
    context = _csr(
        np.ones(2 * len(stated)),
        np.concatenate([staters, staters]),
        np.concatenate([subjects, objects]),
        (n_passages, n_phrases),
    )
    context.data[:] = 1.0
    index.context.adopt(context, 0)
    phrase_counts = np.bincount(context.indices, minlength=n_phrases).astype(np.int32)

    index.counts_loaded()
    index.passage_counts.load(passage_counts)
    index.phrase_counts.load(phrase_counts)
    index.triple_counts.load(triple_counts)
    index.living_passages = int((passage_counts > 0).sum())
    index.living_phrases = int((phrase_counts > 0).sum())
    index.living_triples = int((triple_counts > 0).sum())
    index.living_statements = int(((triple_counts > 0) & index.statements.view()).sum())
    index.total_length = int(index.postings.lengths(n_passages)[passage_counts > 0].sum(dtype=np.int64))


def _csr(values: Any, rows: Any, cols: Any, shape: tuple[int, int]) -> Any:
    matrix = sparse.csr_array((values.astype(np.float64), (rows, cols)), shape=shape)
    matrix.sum_duplicates()
    return matrix


def _synonyms(index: LiveIndex, table: Any) -> None:
    n = len(index.phrases)
    a, b, scores = synonyms.from_table(table, index.ids["phrases"].view())
    # The last row of a pair is the valid one.
    keys = a * max(n, 1) + b
    _, last = np.unique(keys[::-1], return_index=True)
    last = len(keys) - 1 - last
    last = last[scores[last] > 0]
    a, b, scores = a[last], b[last], scores[last]
    matrix = _csr(np.concatenate([scores, scores]), np.concatenate([a, b]), np.concatenate([b, a]), (n, n))
    index.synonym.adopt(matrix, 0)
