"""Replaces data of the live index with the equal data that a checkpoint has just written, mapped from its files."""

from pathlib import Path

from store.checkpoint.capture import CheckpointCapture, texts_of
from store.checkpoint.reader import map_codes, map_hashes, map_lists, map_runs, map_texts, map_vectors
from store.index.columns.holders import SavedHolders
from store.index.file_arrays import mapped_inode
from store.index.live_index import LiveIndex
from store.index.vectors.matrix import BLOCK_VECTORS


def swap_in_files(index: LiveIndex, captured: CheckpointCapture, place: Path) -> None:
    """Replaces full blocks of vectors, bands, texts, hashes and lists with the files at `place`, written from `captured`.

    The disk then holds the data once, and the next checkpoint can link the files. The caller holds the write lock. Raises
    OSError.
    """
    for name, view in captured.vectors.items():
        for start, block in view.blocks():
            if len(block) == BLOCK_VECTORS and mapped_inode(block) is None:
                number = start // BLOCK_VECTORS
                index.vectors[name].swap_in(number, map_vectors(place, name, number), map_codes(place, name, number))
    if index.sketches.runs is captured.runs:
        # Keep existing mappings: a new mapping would have to fault in each page again.
        both = zip(captured.runs, map_runs(place), strict=True)
        index.sketches.swap_in([there if mapped_inode(run.buckets.indices) is None else run for run, there in both])
    for name, texts in texts_of(index).items():
        texts.swap_in(map_texts(place, name, texts.saved))
    for name, (rows, _) in captured.hashed_rows.items():
        rows.swap_in(map_hashes(place, name))
    documents = list(captured.documents.values())
    saved = SavedHolders(map_lists(place, "holders"), documents, index.passages.ids)
    index.holders.swap_in(saved, captured.holders)
    for name, lists in captured.lists.items():
        getattr(index, name).swap_in(map_lists(place, name), lists)
