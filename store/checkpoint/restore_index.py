"""Builds the live index from a checkpoint, the texts in the tables, and the commits that came after the checkpoint."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.checkpoint.files import KINDS, CheckpointUnusable, newest
from store.checkpoint.reader import SavedCheckpoint
from store.checkpoint.replay import replay
from store.index.effective_triples import upstream_triples
from store.index.file_arrays import Room
from store.index.live_index import NO_ROWS, LiveIndex
from store.index.load import TEXTS, append_contents
from store.index.synonyms.search import linkable, wordings
from store.lance import schema
from store.lance.tables import READ_BATCH_ROWS, Tables
from store.types import PassageText, SynonymRule

NO_PASSAGE = PassageText("", "", "")


def recover_index(
    folder: Path, tables: Tables, dim: int, rule: SynonymRule, times: Mapping[int, float], horizon: int
) -> tuple[LiveIndex, int]:
    """The index of what the tables hold now, and the commit of the checkpoint.

    `times` says when each commit was made, `horizon` is the earliest that is kept. Raises CheckpointUnusable where there is no
    checkpoint to start from.
    """
    place = newest(folder)
    if place is None:
        raise CheckpointUnusable("there is none yet")
    saved = SavedCheckpoint(place, dim, rule)
    if saved.commit < horizon or times.get(saved.commit) != saved.time:
        raise CheckpointUnusable(f"{place.name} is of no commit that this store keeps")
    index = LiveIndex(dim, Room(folder))
    # Reading and sorting release the interpreter, which the rest needs all the time.
    with ThreadPoolExecutor(2, thread_name_prefix="start") as beside:
        contents = {
            name: beside.submit(tables.read_where, name, TEXTS[name], f"row < {saved.next_id[name]}") for name in KINDS
        }
        documents = beside.submit(tables.read, "documents")
        sketches = beside.submit(index.sketches.load, saved.array("phrases-sketches"), saved.bands())
        _load_texts(index, saved, {name: table.result() for name, table in contents.items()})
        later = _load_documents(index, saved, documents.result())
        _load_derived(index, saved)
        sketches.result()
    append_contents(index, tables, saved.next_id)
    index.prepare_synonyms(rule.cap)
    replay(index, saved.commit, tables, rule, later)
    return index, saved.commit


def _load_texts(index: LiveIndex, saved: SavedCheckpoint, tables: Mapping[str, Any]) -> None:
    """Puts texts from the tables at the rows that they had. A row that was purged since stays, without a text."""
    known: dict[str, NDArray[Any]] = {}
    texts: dict[str, Any] = {}
    for name in KINDS:
        ids = np.array(saved.array(f"{name}-ids"))
        table = tables[name].sort_by("row")
        rows = np.searchsorted(ids, table["row"].to_numpy())
        # What was purged from the table since was dead then, too.
        there = np.array(saved.array(f"{name}-known")) if saved.has(f"{name}-known") else np.ones(len(ids), np.bool_)
        lacking = there.copy()
        lacking[rows[rows < len(ids)]] = False
        counts = saved.array(f"{name[:-1]}-counts")
        if not np.array_equal(ids[rows[rows < len(ids)]], table["row"].to_numpy()) or counts[lacking].any():
            raise CheckpointUnusable(f"the snapshot does not match the table {name}")
        index.ids[name].extend(ids)
        known[name], texts[name] = rows, table
    index.next_id = dict(saved.next_id)

    table, rows = texts["passages"], known["passages"].tolist()
    index.passages = [NO_PASSAGE] * index.ids["passages"].n
    for row, passage in zip(rows, schema.passages.from_table(table), strict=True):
        index.passages[row] = passage
        index.passage_rows[passage.id] = row
    index.holders = [{} for _ in index.passages]

    words, rows = schema.phrases.from_table(texts["phrases"]), known["phrases"].tolist()
    index.phrases = [""] * index.ids["phrases"].n
    for row, phrase in zip(rows, words, strict=True):
        index.phrases[row] = phrase
    index.phrase_rows = dict(zip(words, rows, strict=True))
    index.linkable.extend(np.fromiter(map(linkable, index.phrases), np.bool_, len(index.phrases)))
    index.wordings.extend(wordings(index.phrases))
    index.synonym_needs.extend(np.zeros(len(index.phrases)))

    table, places = texts["triples"], known["triples"]
    index.predicates.extend([""] * index.ids["triples"].n)
    ends = np.zeros((len(index.predicates), 2), np.int32)
    ends[places], predicates = schema.triples.from_table(table, index.ids["phrases"].view())
    index.triple_ends.extend(ends)
    for row, predicate in zip(places.tolist(), predicates, strict=True):
        index.predicates[row] = predicate
    index.hashed_triples.load(places)


def _load_documents(index: LiveIndex, saved: SavedCheckpoint, table: Any) -> list[Mapping[str, Any]]:
    """Puts in the documents as of the checkpoint; returns the rows of `documents` that came later."""
    later, interned = [], index.interner()
    rows = (row for batch in table.sort_by("commit").to_batches(READ_BATCH_ROWS) for row in batch.to_pylist())
    for row in rows:
        if row["commit"] > saved.commit:
            later.append(row)
        elif schema.documents.removes(row):
            index.documents.pop(row["uri"], None)
        else:
            index.documents[row["uri"]] = schema.documents.from_row(row, interned)
    for document in index.documents.values():
        for passage, triples in upstream_triples(document).items():
            row = index.passage_rows.get(passage)
            if row is None:
                raise CheckpointUnusable(f"the passage {passage} of {document.uri} came after the snapshot")
            index.holders[row][document.uri] = triples
    return later


def _load_derived(index: LiveIndex, saved: SavedCheckpoint) -> None:
    for name, vectors in zip(KINDS, (index.passage_vectors, index.phrase_vectors, index.triple_vectors), strict=True):
        vectors.load(saved.vectors(name), saved.array(f"{name}-encoded"), saved.codes(name))
    index.postings = saved.postings()
    for name in ("passage", "phrase", "triple"):
        getattr(index, f"{name}_counts").load(saved.array(f"{name}-counts"))
    index.living_passages = int((index.passage_counts.view().array() > 0).sum())
    index.living_phrases = int((index.phrase_counts.view().array() > 0).sum())
    index.living_triples = int((index.triple_counts.view().array() > 0).sum())
    index.total_length = saved.total_length
    for name, matrix in index.matrices.items():
        matrix.adopt(saved.matrix(name), 0)
    index.effective = [NO_ROWS if rows is None else rows for rows in saved.lists("effective")]
    index.extracted = saved.lists("extracted")
    index.extraction_states = saved.extraction_states()
    for row, passage in enumerate(index.passages):
        if passage is NO_PASSAGE:  # purged since, and its extraction with it
            index.extracted[row] = None
            index.extraction_states.pop(row, None)
    index.purged_rows = sum(index.ids[name].n for name in KINDS)
    index.purged_rows -= len(index.passage_rows) + len(index.phrase_rows) + len(index.triple_rows)
