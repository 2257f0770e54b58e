"""Starting from a snapshot: what was written down, the texts from the tables, and the commits that came after it."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.checkpoint.checkpoint import KINDS, Saved, Unusable, newest
from store.index.load import TEXTS, append_contents, users_of
from store.index.state import NOTHING, Given, Image
from store.index.synonyms import linkable, wordings
from store.lance import schema
from store.lance.tables import BATCH, Tables
from store.log.plan import SynonymRule, plan
from store.types import Batch, Document, PassageText

FEW = 1_000

NO_PASSAGE = PassageText("", "", "")


def start_image(
    folder: Path, tables: Tables, dim: int, rule: SynonymRule, times: Mapping[int, float], horizon: int
) -> tuple[Image, int]:
    """The image of what the tables hold now, and of which commit the snapshot was.

    `times` says when each commit was made, `horizon` is the earliest that is kept. Raises Unusable where there is no
    snapshot to start from.
    """
    place = newest(folder)
    if place is None:
        raise Unusable("there is none yet")
    saved = Saved(place, dim, rule)
    if saved.commit < horizon or times.get(saved.commit) != saved.time:
        raise Unusable(f"{place.name} is of no commit that this store keeps")
    image = Image(dim)
    # Reading and sorting let go of the interpreter, which the rest needs all the time.
    with ThreadPoolExecutor(2, thread_name_prefix="start") as beside:
        contents = {
            name: beside.submit(tables.read_where, name, TEXTS[name], f"row < {saved.next_id[name]}") for name in KINDS
        }
        documents = beside.submit(tables.read, "documents")
        sketches = beside.submit(image.sketches.load, saved.array("phrases-sketches"))
        _contents(image, saved, {name: table.result() for name, table in contents.items()})
        later = _documents(image, saved, documents.result())
        _derived(image, saved)
        sketches.result()
    append_contents(image, tables, saved.next_id)
    image.prepare(rule.cap)
    replay(image, saved.commit, tables, rule, later)
    return image, saved.commit


def _contents(image: Image, saved: Saved, tables: Mapping[str, Any]) -> None:
    """Texts from the tables, at the rows that they had; a row that was purged since keeps its place, without a text."""
    known: dict[str, NDArray[Any]] = {}
    texts: dict[str, Any] = {}
    for name in KINDS:
        ids = np.array(saved.array(f"{name}-ids"))
        table = tables[name].sort_by("row")
        rows = np.searchsorted(ids, table["row"].to_numpy())
        # What purging took from the table since was dead then, too.
        there = np.array(saved.array(f"{name}-known")) if saved.has(f"{name}-known") else np.ones(len(ids), np.bool_)
        lacking = there.copy()
        lacking[rows[rows < len(ids)]] = False
        counts = saved.array(f"{name[:-1]}-counts")
        if not np.array_equal(ids[rows[rows < len(ids)]], table["row"].to_numpy()) or counts[lacking].any():
            raise Unusable(f"the snapshot does not go with the table {name}")
        image.ids[name].extend(ids)
        known[name], texts[name] = rows, table
    image.next_id = dict(saved.next_id)

    table, rows = texts["passages"], known["passages"].tolist()
    image.passages = [NO_PASSAGE] * image.ids["passages"].n
    for row, passage in zip(rows, schema.passages.from_table(table), strict=True):
        image.passages[row] = passage
        image.passage_rows[passage.id] = row
    image.users = [{} for _ in image.passages]

    words, rows = schema.phrases.from_table(texts["phrases"]), known["phrases"].tolist()
    image.phrases = [""] * image.ids["phrases"].n
    for row, phrase in zip(rows, words, strict=True):
        image.phrases[row] = phrase
    image.phrase_rows = dict(zip(words, rows, strict=True))
    image.linkable.extend(np.fromiter(map(linkable, image.phrases), np.bool_, len(image.phrases)))
    image.wordings.extend(wordings(image.phrases))
    image.synonym_needs.extend(np.zeros(len(image.phrases)))

    table, places = texts["triples"], known["triples"]
    image.predicates = [""] * image.ids["triples"].n
    ends = np.zeros((len(image.predicates), 2), np.int32)
    ends[places], predicates = schema.triples.from_table(table, image.ids["phrases"].view())
    image.triple_ends.extend(ends)
    for row, predicate in zip(places.tolist(), predicates, strict=True):
        image.predicates[row] = predicate
    keys = zip(ends[places, 0].tolist(), predicates, ends[places, 1].tolist(), strict=True)
    image.triple_rows = dict(zip(keys, places.tolist(), strict=True))


def _documents(image: Image, saved: Saved, table: Any) -> list[Mapping[str, Any]]:
    """Fills in the documents as of the snapshot; returns the rows of `documents` that came later."""
    later, known = [], image.copies()
    rows = (row for batch in table.sort_by("commit").to_batches(BATCH) for row in batch.to_pylist())
    for row in rows:
        if row["commit"] > saved.commit:
            later.append(row)
        elif schema.documents.removes(row):
            image.documents.pop(row["uri"], None)
        else:
            image.documents[row["uri"]] = schema.documents.from_row(row, known)
    for document in image.documents.values():
        _hold(image, document)
    return later


def _hold(image: Image, document: Document) -> None:
    found: dict[str, Given] = users_of(document)
    for passage, given in found.items():
        row = image.passage_rows.get(passage)
        if row is None:
            raise Unusable(f"the passage {passage} of {document.uri} came after the snapshot")
        image.users[row][document.uri] = given


def _derived(image: Image, saved: Saved) -> None:
    for name, vectors in zip(KINDS, (image.passage_vectors, image.phrase_vectors, image.triple_vectors), strict=True):
        vectors.load(saved.vectors(name), saved.array(f"{name}-encoded"))
    image.postings = saved.postings()
    for name in ("passage", "phrase", "triple"):
        getattr(image, f"{name}_counts").load(saved.array(f"{name}-counts"))
    image.living_passages = int((image.passage_counts.view().array() > 0).sum())
    image.living_phrases = int((image.phrase_counts.view().array() > 0).sum())
    image.living_triples = int((image.triple_counts.view().array() > 0).sum())
    image.total_length = saved.total_length
    for name, matrix in image.matrices.items():
        matrix.adopt(saved.matrix(name), 0)
    image.effective = [NOTHING if rows is None else rows for rows in saved.lists("effective")]
    image.extracted = saved.lists("extracted")
    image.extraction_states = saved.extraction_states()
    for row, passage in enumerate(image.passages):
        if passage is NO_PASSAGE:  # purged since, and its reading with it
            image.extracted[row] = None
            image.extraction_states.pop(row, None)
    image.forgotten = sum(image.ids[name].n for name in KINDS)
    image.forgotten -= len(image.passage_rows) + len(image.phrase_rows) + len(image.triple_rows)


def replay(image: Image, commit: int, tables: Tables, rule: SynonymRule, later: list[Mapping[str, Any]]) -> None:
    """Applies the commits after `commit`, whose rows of `documents` are `later`, as one: the end state is a function of the
    documents alone."""
    after = f"commit > {commit}"
    rows = tables.read_where("extractions", None, after).sort_by("commit").to_pylist()
    found = [schema.extractions.from_row(row) for row in rows]
    last = {row["uri"]: row for row in later}
    removed = tuple(uri for uri, row in last.items() if schema.documents.removes(row))
    # `str` gives what it is given: a few texts more than needed cost less than going through all.
    known: Callable[[str], str] = image.copies() if len(later) > FEW else str
    rest = (row for row in last.values() if not schema.documents.removes(row))
    documents = tuple(schema.documents.from_row(row, known) for row in rest)
    if not (found or removed or documents):
        return
    delta = plan(image, Batch(documents, removed, extractions=tuple({e.passage: e for e in found}.values())), rule, 0.0)
    # They keep the times of their own commits.
    delta.documents = list(documents)
    image.apply(delta)
    pairs = tables.read_where("synonyms", None, after).sort_by("commit")
    a, b, scores = schema.synonyms.from_table(pairs, image.ids["phrases"].view())
    wanted = dict(zip(zip(a.tolist(), b.tolist(), strict=True), scores.tolist(), strict=True))
    if not wanted:
        return
    # Where synonyms are searched approximately, the table has the last word.
    rows, cols, weights = image.synonym.view(image.shape("synonym")).entries(
        np.array(sorted({pair[0] for pair in wanted}))
    )
    there = dict(zip(zip(rows.tolist(), cols.tolist(), strict=True), weights.tolist(), strict=True))
    moves = [(x, y, score - there.get((x, y), 0.0)) for (x, y), score in wanted.items()]
    moves = [move for move in moves if move[2]]
    if moves:
        x, y, by = (np.array(part) for part in zip(*moves, strict=True))
        image.synonym.add(np.concatenate([x, y]), np.concatenate([y, x]), np.concatenate([by, by]))
