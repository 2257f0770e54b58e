"""Builds the live index from a checkpoint and the commits after it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from store.change.load import append_contents, replay
from store.checkpoint.files import CheckpointUnusable, SavedCheckpoint, newest
from store.index.file_arrays import ArrayStorage
from store.index.live_index import KINDS, LiveIndex
from store.log.commits import Commits
from store.types import SynonymRule


def recover_index(commits: Commits, dim: int, rule: SynonymRule) -> tuple[LiveIndex, int]:
    """Returns the index as of the last commit, and the commit of the checkpoint from which it was built.

    Raises CheckpointUnusable if no checkpoint can be used.
    """
    tables = commits.tables
    place = newest(tables.folder)
    if place is None:
        raise CheckpointUnusable("there is none yet")
    saved = SavedCheckpoint(place, dim, rule)
    if saved.commit < commits.horizon or commits.times.get(saved.commit) != saved.time:
        raise CheckpointUnusable(f"{place.name} belongs to no commit that this store keeps")
    index = LiveIndex(dim, ArrayStorage(tables.folder), rule)
    with ThreadPoolExecutor(2, thread_name_prefix="start") as readers:
        numbers = {name: readers.submit(tables.read, name, ("row",)) for name in KINDS}
        for name, part in index.parts():
            part.load(saved, name)
        there = {name: np.sort(table.result()["row"].to_numpy()) for name, table in numbers.items()}
    index.next_id = dict(saved.next_id)
    index.recount()
    for name, rows in there.items():
        _forget_purged(index, name, rows[: np.searchsorted(rows, saved.next_id[name])])
    if any(len(rows) and rows[-1] >= saved.next_id[name] for name, rows in there.items()):
        append_contents(index, tables, saved.next_id)
        index.sketch_phrases()
    replay(index, tables, saved.commit)
    return index, saved.commit


def _forget_purged(index: LiveIndex, name: str, kept: NDArray[np.int32]) -> None:
    """Removes the rows purged after the checkpoint from the map of texts to rows. `kept`: row numbers in the table, ascending,
    without rows added after the checkpoint."""
    ids = index.ids[name].view()
    purged = np.ones(len(ids), np.bool_)
    # Usually nothing was purged after the checkpoint, so the row numbers in index and table are equal.
    rows = np.arange(len(ids)) if np.array_equal(ids, kept) else np.searchsorted(ids, kept)
    if len(rows) and (rows[-1] >= len(ids) or not np.array_equal(ids[rows], kept)):
        raise CheckpointUnusable(f"the table {name} has rows that the checkpoint lacks")
    purged[rows] = False
    # Rows purged after the checkpoint must already have been dead at the checkpoint.
    if (purged & index.counts[name].view().positive()).any():
        raise CheckpointUnusable(f"the table {name} lacks rows that the checkpoint has")
    for row in index.hashed_rows[name].remove_rows(purged):
        if name == "passages":  # purged together with its extraction
            index.extracted[row] = None
            index.extraction_states.pop(row, None)
    index.purged_rows += int(purged.sum())
