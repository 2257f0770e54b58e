"""From the tables to the image: what opening a store does."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from store.index.lsh import sort
from store.index.state import NOTHING, Given, Image
from store.lance.schema import documents, extractions, passages, phrases, synonyms, triples, vectors
from store.lance.tables import Tables
from store.log.plan import wanted
from store.types import Document

TEXTS = {
    "passages": passages.TEXT_COLUMNS,
    "phrases": phrases.TEXT_COLUMNS,
    "triples": triples.TEXT_COLUMNS,
}
"""The columns of each table but its vectors."""

AT_A_TIME = 256
"""Rows that are made Python objects at a time: some 5 ms."""


def load_image(tables: Tables, dim: int, cap: int, commit: int | None = None) -> Image:
    """The image of what the tables hold now, or as of `commit`. `cap`: `store.plan.SynonymRule`'s."""
    image = Image(dim)
    append_contents(image, tables, dict.fromkeys(image.next_id, 0))
    _fill(image, tables, commit)
    image.prepare(cap)
    return image


def past_image(then: Image, tables: Tables, commit: int) -> Image:
    """Fills `then` (`Image.past`) with what lived at `commit`. O(documents and edges), no vector is read; beside commits."""
    _fill(then, tables, commit)
    return then


def _fill(image: Image, tables: Tables, commit: int | None) -> None:
    # A few rows at a time: while they are made Python's, no other thread runs.
    for batch in _last_readings(until(tables.read("extractions"), commit)).to_batches(AT_A_TIME):
        _extractions(image, batch)
    known = image.copies()
    for batch in until(tables.read("documents"), commit).to_batches(AT_A_TIME):
        for row in batch.to_pylist():
            _document(image, row, known)
    _living(image)
    _synonyms(image, until(tables.read("synonyms"), commit))


def until(table: Any, commit: int | None) -> Any:
    """The table's rows in the order of their commits, those after `commit` left out."""
    if commit is not None:
        table = table.filter(pc.field("commit") <= commit)
    return table.sort_by("commit")


def append_contents(image: Image, tables: Tables, first: Mapping[str, int]) -> None:
    """Appends the passages, phrases and triples whose number is `first` (by table) or a later one."""

    def rows(name: str) -> Any:
        return tables.read_where(name, TEXTS[name], f"row >= {first[name]}").sort_by("row")

    tables_by_name = {"passages": rows("passages"), "phrases": rows("phrases"), "triples": rows("triples")}
    table = tables_by_name["passages"]
    image.add_passages(passages.from_table(table), table["row"].to_numpy())
    table = tables_by_name["phrases"]
    image.add_phrases(phrases.from_table(table), table["row"].to_numpy())
    table = tables_by_name["triples"]
    ends, predicates = triples.from_table(table, image.ids["phrases"].view())
    keys = zip(ends[:, 0].tolist(), predicates, ends[:, 1].tolist(), strict=True)
    image.add_triples(list(keys), table["row"].to_numpy())
    for name, table in tables_by_name.items():
        if table.num_rows:
            image.next_id[name] = int(table["row"][-1].as_py()) + 1
    del table, tables_by_name
    for name, array in (
        ("passages", image.passage_vectors),
        ("phrases", image.phrase_vectors),
        ("triples", image.triple_vectors),
    ):
        # Vectors are most of a store: each goes to its place as it is read, so that there is one copy of them.
        for batch in tables.batches(name, ("row", "vector"), f"row >= {first[name]}"):
            places = np.searchsorted(image.ids[name].view(), batch["row"].to_numpy())
            array.put(places, vectors.vectors_of(batch, image.dim))
        if array.n != image.ids[name].n:
            raise ValueError(f"the table {name} has {image.ids[name].n} rows and {array.n} vectors")
    image.sketches.extend(image.phrase_vectors)
    if image.sketches.due:
        image.sketches.adopt(sort(image.sketches.view()))


def _last_readings(table: Any) -> Any:
    """Of several rows for one passage the last: the triples of an earlier one may have been purged."""
    last = {passage: row for row, passage in enumerate(table["passage"].to_pylist())}
    return table if len(last) == table.num_rows else table.take(np.array(sorted(last.values()), np.int64))


def _extractions(image: Image, batch: Any) -> None:
    for passage, state, found in extractions.states_and_triples(batch):
        row = image.passage_rows.get(passage)
        if row is not None:
            image.extracted[row] = _rows(image, found)
            image.extraction_states[row] = state


def _rows(image: Image, triples: Any) -> NDArray[np.int32]:
    keys = {(image.phrase_rows[s], p, image.phrase_rows[o]) for s, p, o in triples}
    return np.array(sorted(image.triple_rows[key] for key in keys), np.int32) if keys else NOTHING


def _document(image: Image, row: dict[str, Any], known: Callable[[str], str]) -> None:
    """Takes over one row of `documents`; rows come in the order of their commits, a later one replaces an earlier."""
    if documents.removes(row):
        image.documents.pop(row["uri"], None)
        return
    image.documents[row["uri"]] = documents.from_row(row, known)


def users_of(document: Document) -> dict[str, Given]:
    """For each passage that a document holds: the triples that it gives, None where it gives none."""
    found: dict[str, Given] = {}
    for ref in document.passages:
        before = found.get(ref.passage)
        found[ref.passage] = before if ref.given is None else tuple(sorted({*(before or ()), *ref.given}))
    return found


def _living(image: Image) -> None:
    """Counts and edges, from the documents that there are."""
    for document in image.documents.values():
        for passage, given in users_of(document).items():
            image.users[image.passage_rows[passage]][document.uri] = given
    for row, users in enumerate(image.users):
        if not users:
            continue
        if any(given is not None for given in users.values()):
            image.effective[row] = _rows(image, wanted(users, ()))
        else:
            found = image.extracted[row]
            image.effective[row] = found if found is not None else NOTHING
    sizes = np.array([len(rows) for rows in image.effective], np.int64)
    stated = np.concatenate(image.effective) if len(sizes) else NOTHING
    holders = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    n_phrases, n_passages, n_triples = len(image.phrases), len(image.passages), len(image.predicates)
    ends = image.triple_ends.view()

    passage_counts = np.array([len(users) for users in image.users], np.int32)
    triple_counts = np.bincount(stated, minlength=n_triples).astype(np.int32)
    image.incidence.adopt(_csr(np.ones(len(stated)), holders, stated, (n_passages, n_triples)), 0)
    subjects, objects = ends[stated, 0], ends[stated, 1]
    apart = subjects != objects
    pairs = np.concatenate([subjects[apart], objects[apart]]), np.concatenate([objects[apart], subjects[apart]])
    image.relation.adopt(_csr(np.ones(len(pairs[0])), *pairs, (n_phrases, n_phrases)), 0)
    held = _csr(
        np.ones(2 * len(stated)),
        np.concatenate([holders, holders]),
        np.concatenate([subjects, objects]),
        (n_passages, n_phrases),
    )
    held.data[:] = 1.0
    image.context.adopt(held, 0)
    phrase_counts = np.bincount(held.indices, minlength=n_phrases).astype(np.int32)

    image.passage_counts.load(passage_counts)
    image.phrase_counts.load(phrase_counts)
    image.triple_counts.load(triple_counts)
    image.living_passages = int((passage_counts > 0).sum())
    image.living_phrases = int((phrase_counts > 0).sum())
    image.living_triples = int((triple_counts > 0).sum())
    image.total_length = sum(image.postings.length(int(row)) for row in np.flatnonzero(passage_counts > 0))


def _csr(values: Any, rows: Any, cols: Any, shape: tuple[int, int]) -> Any:
    matrix = sparse.csr_array((values.astype(np.float64), (rows, cols)), shape=shape)
    matrix.sum_duplicates()
    return matrix


def _synonyms(image: Image, table: Any) -> None:
    n = len(image.phrases)
    a, b, scores = synonyms.from_table(table, image.ids["phrases"].view())
    # The last row of a pair says what it is now.
    keys = a * max(n, 1) + b
    _, last = np.unique(keys[::-1], return_index=True)
    last = len(keys) - 1 - last
    last = last[scores[last] > 0]
    a, b, scores = a[last], b[last], scores[last]
    matrix = _csr(np.concatenate([scores, scores]), np.concatenate([a, b]), np.concatenate([b, a]), (n, n))
    image.synonym.adopt(matrix, 0)
