"""From the tables to the image: what opening a store does."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from store.image import NOTHING, Given, Image
from store.plan import SynonymRule, wanted
from store.sketches import sort
from store.synonyms import Crowd, similar
from store.tables import Tables
from store.types import Document, Extraction, PassageRef, PassageText, State

TEXTS: Mapping[str, Sequence[str]] = {
    "passages": ("row", "id", "title", "text"),
    "phrases": ("row", "text"),
    "triples": ("row", "subject", "predicate", "object"),
}
"""The columns of each table but its vectors."""

AT_A_TIME = 256
"""Rows that are made Python objects at a time: some 5 ms."""


def load_image(tables: Tables, dim: int, rule: SynonymRule, commit: int | None = None) -> Image:
    """The image of what the tables hold now, or as of `commit`."""
    image = Image(dim)
    append_contents(image, tables, dict.fromkeys(image.next_id, 0))
    _fill(image, tables, rule, commit)
    return image


def past_image(then: Image, tables: Tables, rule: SynonymRule, commit: int) -> Image:
    """Fills `then` (`Image.past`) with what lived at `commit`. O(documents and edges), no vector is read; beside commits."""
    _fill(then, tables, rule, commit, changing=False)
    return then


def _fill(image: Image, tables: Tables, rule: SynonymRule, commit: int | None, changing: bool = True) -> None:
    """`changing`: whether commits will follow, which need to know more of the synonyms than queries do."""
    # A few rows at a time: while they are made Python's, no other thread runs.
    for batch in _last_readings(until(tables.read("extractions"), commit)).to_batches(AT_A_TIME):
        _extractions(image, batch)
    known = image.copies()
    for batch in until(tables.read("documents"), commit).to_batches(AT_A_TIME):
        for row in batch.to_pylist():
            _document(image, row, known)
    _living(image)
    matrix = _synonyms(image, until(tables.read("synonyms"), commit))
    if changing:
        _count_pairs(image, matrix, rule)


def until(table: Any, commit: int | None) -> Any:
    """The table's rows in the order of their commits, those after `commit` left out."""
    if commit is not None:
        table = table.filter(pc.field("commit") <= commit)
    return table.sort_by("commit")


def append_contents(image: Image, tables: Tables, first: Mapping[str, int]) -> None:
    """Appends the passages, phrases and triples whose number is `first` (by table) or a later one."""

    def rows(name: str) -> Any:
        return tables.read_where(name, TEXTS[name], f"row >= {first[name]}").sort_by("row")

    passages = rows("passages")
    columns = zip(passages["id"].to_pylist(), passages["title"].to_pylist(), passages["text"].to_pylist(), strict=True)
    image.add_passages([PassageText(*column) for column in columns], passages["row"].to_numpy())
    phrases = rows("phrases")
    image.add_phrases(phrases["text"].to_pylist(), phrases["row"].to_numpy())
    triples = rows("triples")
    ids = image.ids["phrases"].view()
    predicates: dict[str, str] = {}
    image.add_triples(
        list(
            zip(
                np.searchsorted(ids, triples["subject"].to_numpy()).tolist(),
                (predicates.setdefault(text, text) for text in triples["predicate"].to_pylist()),
                np.searchsorted(ids, triples["object"].to_numpy()).tolist(),
                strict=True,
            )
        ),
        triples["row"].to_numpy(),
    )
    for name, table in (("passages", passages), ("phrases", phrases), ("triples", triples)):
        if table.num_rows:
            image.next_id[name] = int(table["row"][-1].as_py()) + 1
    del passages, phrases, triples
    for name, vectors in (
        ("passages", image.passage_vectors),
        ("phrases", image.phrase_vectors),
        ("triples", image.triple_vectors),
    ):
        # Vectors are most of a store: each goes to its place as it is read, so that there is one copy of them.
        for batch in tables.batches(name, ("row", "vector"), f"row >= {first[name]}"):
            places = np.searchsorted(image.ids[name].view(), batch["row"].to_numpy())
            vectors.put(places, batch["vector"].flatten().to_numpy(zero_copy_only=False).reshape(-1, image.dim))
        if vectors.n != image.ids[name].n:
            raise ValueError(f"the table {name} has {image.ids[name].n} rows and {vectors.n} vectors")
    image.sketches.extend(image.phrase_vectors)
    if image.sketches.due:
        image.sketches.adopt(sort(image.sketches.view()))


def _last_readings(table: Any) -> Any:
    """Of several rows for one passage the last: the triples of an earlier one may have been purged."""
    last = {passage: row for row, passage in enumerate(table["passage"].to_pylist())}
    return table if len(last) == table.num_rows else table.take(np.array(sorted(last.values()), np.int64))


def _extractions(image: Image, batch: Any) -> None:
    for passage, extractor, triples in zip(
        batch["passage"].to_pylist(), batch["extractor"].to_pylist(), batch["triples"].to_pylist(), strict=True
    ):
        row = image.passage_rows.get(passage)
        if row is not None:
            image.extracted[row] = _rows(image, triples)
            image.extractors[row] = extractor


def _rows(image: Image, triples: Any) -> NDArray[np.int32]:
    keys = {(image.phrase_rows[s], p, image.phrase_rows[o]) for s, p, o in triples}
    return np.array(sorted(image.triple_rows[key] for key in keys), np.int32) if keys else NOTHING


def _document(image: Image, row: dict[str, Any], known: Callable[[str], str]) -> None:
    """Takes over one row of `documents`; rows come in the order of their commits, a later one replaces an earlier."""
    if row["state"] == State.REMOVED.value:
        image.documents.pop(row["uri"], None)
        return
    image.documents[row["uri"]] = document_of(row, known)


def document_of(row: Mapping[str, Any], known: Callable[[str], str]) -> Document:
    """A row of `documents` as it was committed. `known` gives the copy of a text that is there already (`Image.copies`)."""
    refs = tuple(
        PassageRef(
            known(passage),
            location,
            None if given is None else tuple((known(s), known(p), known(o)) for s, p, o in given),
        )
        for passage, location, given in json.loads(row["passages"])
    )
    return Document(
        uri=row["uri"],
        source=row["source"],
        title=row["title"],
        state=State(row["state"]),
        error=row["error"],
        attempts=row["attempts"],
        next_try=row["next_try"],
        modified_at=row["modified_at"],
        committed_at=row["committed_at"],
        metadata=json.loads(row["metadata"]),
        passages=refs,
        payload=row["payload"],
    )


def extraction_of(row: Mapping[str, Any]) -> Extraction:
    """A row of `extractions` as it was committed."""
    return Extraction(
        row["passage"],
        row["extractor"],
        tuple(row["entities"] or ()),
        tuple((s, p, o) for s, p, o in row["triples"] or ()),
        row["prompt_tokens"],
        row["completion_tokens"],
        row["took_ms"],
    )


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


def _synonyms(image: Image, table: Any) -> Any:
    n = len(image.phrases)
    ids = image.ids["phrases"].view()
    a, b = (np.searchsorted(ids, table[name].to_numpy()).astype(np.int64) for name in ("a", "b"))
    scores = table["score"].to_numpy().astype(np.float64)
    # The last row of a pair says what it is now.
    keys = a * max(n, 1) + b
    _, last = np.unique(keys[::-1], return_index=True)
    last = len(keys) - 1 - last
    last = last[scores[last] > 0]
    a, b, scores = a[last], b[last], scores[last]
    matrix = _csr(np.concatenate([scores, scores]), np.concatenate([a, b]), np.concatenate([b, a]), (n, n))
    image.synonym.adopt(matrix, 0)
    return matrix


def _count_pairs(image: Image, matrix: Any, rule: SynonymRule) -> None:
    """How many pairs each phrase has, more than edges where it is crowded."""
    degrees = np.diff(matrix.indptr)
    pairs = degrees.astype(np.int32)
    # Only a phrase with at least `cap` edges can have more pairs than edges.
    maybe = np.flatnonzero(degrees >= rule.cap)
    if len(maybe):
        alive = (image.phrase_counts.view().array() > 0) & image.linkable.view()
        empty = np.empty((0, image.dim), np.float32)
        found: dict[int, list[tuple[int, float]]] = {int(row): [] for row in maybe}
        for row, other, score in zip(
            *similar(image.phrase_vectors.view(), empty, alive, maybe, rule.threshold, image.searched), strict=True
        ):
            found[int(row)].append((int(other), float(score)))
        for row, near in found.items():
            pairs[row] = len(near)
            if len(near) > rule.cap:
                near.sort(key=lambda item: (-item[1], image.phrases[item[0]]))
                image.crowds[row] = Crowd(len(near), dict(near[: rule.cap]))
    image.pair_counts.load(pairs)
