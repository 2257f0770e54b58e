"""Builds the live index from a checkpoint and the commits after it."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from store.checkpoint.capture import texts_of
from store.checkpoint.files import KINDS, CheckpointUnusable, newest
from store.checkpoint.reader import SavedCheckpoint
from store.checkpoint.replay import replay
from store.index.columns.holders import Holders, SavedHolders
from store.index.columns.row_lists import RowLists
from store.index.file_arrays import ArrayStorage
from store.index.live_index import LiveIndex
from store.index.load import append_contents
from store.lance.tables import TableView, after_commit
from store.types import SynonymRule


def recover_index(
    folder: Path, tables: TableView, dim: int, rule: SynonymRule, times: Mapping[int, float], horizon: int
) -> tuple[LiveIndex, int]:
    """Returns the index of the present tables, and the commit of the checkpoint that it was built from.

    `times` gives the time of each commit; `horizon` is the earliest commit that is kept. Raises CheckpointUnusable if no
    checkpoint can be used.
    """
    place = newest(folder)
    if place is None:
        raise CheckpointUnusable("there is none yet")
    saved = SavedCheckpoint(place, dim, rule)
    if saved.commit < horizon or times.get(saved.commit) != saved.time:
        raise CheckpointUnusable(f"{place.name} is of no commit that this store keeps")
    index = LiveIndex(dim, ArrayStorage(folder), rule)
    with ThreadPoolExecutor(2, thread_name_prefix="start") as beside:
        numbers = {name: beside.submit(tables.read, name, ("row",)) for name in KINDS}
        later = beside.submit(tables.read_where, "documents", None, after_commit(saved.commit))
        sketches = beside.submit(
            index.sketches.load, saved.array("phrases-signs"), saved.runs(), saved.array("phrases-sketches")
        )
        there = {name: np.sort(table.result()["row"].to_numpy()) for name, table in numbers.items()}
        _load_texts(index, saved, there)
        _load_documents(index, saved)
        _load_derived(index, saved)
        sketches.result()
    if any(len(rows) and rows[-1] >= saved.next_id[name] for name, rows in there.items()):
        append_contents(index, tables, saved.next_id)
        index.sketch_phrases()
    replay(index, saved.commit, tables, later.result().sort_by("commit").to_pylist())
    return index, saved.commit


def _load_texts(index: LiveIndex, saved: SavedCheckpoint, there: Mapping[str, NDArray[np.int32]]) -> None:
    """Maps the texts and their rows. `there`: the row numbers in the tables, ascending.

    A row that was purged after the checkpoint stays, but is removed from the map from texts to rows.
    """
    for name in KINDS:
        ids, hashes = saved.array(f"{name}-ids"), saved.hashes(name)
        kept = there[name][: np.searchsorted(there[name], saved.next_id[name])]
        purged = np.ones(len(ids), np.bool_)
        # Usually nothing was purged after the checkpoint, and numbers equal rows.
        rows = np.arange(len(ids)) if np.array_equal(ids, kept) else np.searchsorted(ids, kept)
        if len(rows) and (rows[-1] >= len(ids) or not np.array_equal(ids[rows], kept)):
            raise CheckpointUnusable(f"the table {name} has rows that the checkpoint lacks")
        purged[rows] = False
        # Rows purged after the checkpoint must have been dead at the checkpoint.
        if saved.array(f"{name[:-1]}-counts")[purged].any():
            raise CheckpointUnusable(f"the table {name} lacks rows that the checkpoint has")
        index.ids[name].load(ids)
        index.hashed_rows[name].load(hashes, hashes[1][purged[hashes[1]]].tolist())
        index.purged_rows += int(purged.sum())
    for name, texts in texts_of(index).items():
        texts.adopt(saved.texts(name))
    index.next_id = dict(saved.next_id)
    index.linkable.load(saved.array("phrases-linkable"))
    index.crowding.restore(saved.array("crowding-counts"), saved.array("phrases-crowded"))
    index.triple_ends.load(saved.array("triples-ends"))
    index.statements.load(saved.array("triples-statements"))


def _load_documents(index: LiveIndex, saved: SavedCheckpoint) -> None:
    documents = saved.documents()
    index.documents = {document.uri: document for document in documents}
    index.holders = Holders(SavedHolders(saved.lists("holders"), documents, index.passages.ids))


def _load_derived(index: LiveIndex, saved: SavedCheckpoint) -> None:
    for name, vectors in index.vectors.items():
        vectors.load(saved.vectors(name), saved.array(f"{name}-encoded"), saved.codes(name))
    index.postings = saved.postings("postings", index.storage)
    index.name_postings = saved.postings("name-postings", index.storage)
    index.folded_rows["names"].load(saved.hashes("names"), ())
    for name in ("passage", "phrase", "triple", "name"):
        getattr(index, f"{name}_counts").load(saved.array(f"{name}-counts"))
    index.living_passages = int(index.passage_counts.view().positive().sum())
    index.living_phrases = int(index.phrase_counts.view().positive().sum())
    stated = index.triple_counts.view().positive()
    index.living_triples, index.living_statements = int(stated.sum()), int((stated & index.statements.view()).sum())
    index.total_length = saved.total_length
    for name, matrix in index.matrices.items():
        matrix.adopt(saved.matrix(name), 0)
    index.effective, index.extracted = RowLists(saved.lists("effective")), RowLists(saved.lists("extracted"))
    index.extraction_states = saved.extraction_states()
    for row in index.hashed_rows["passages"].gone:  # purged after the checkpoint, together with its extraction
        index.extracted[row] = None
        index.extraction_states.pop(row, None)
