"""Captures the parts of the live index that a checkpoint writes, between two commits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from store.checkpoint.files import KINDS
from store.index.bm25 import Postings
from store.index.columns.hashed_rows import HashedRows
from store.index.columns.holders import Holders
from store.index.columns.row_lists import RowLists
from store.index.columns.texts import Texts
from store.index.live_index import LiveIndex
from store.index.synonyms.sorted_bands import SortedBands
from store.index.vectors.matrix import VectorsView
from store.types import Document, ExtractionState

MAX_PURGED_SHARE = 0.25
"""Share of purged rows above which no checkpoint is written: the index is rebuilt first."""


KIND_OF_TEXTS = {
    "passages-names": "passages",
    "passages-titles": "passages",
    "passages-texts": "passages",
    "phrases": "phrases",
    "predicates": "triples",
    "names": "names",
}
"""By column of texts: the kind of its rows."""


@dataclass(frozen=True, slots=True)
class CheckpointCapture:
    """The content of a checkpoint as of one commit: views and shallow copies."""

    commit: int
    time: float
    dim: int
    next_id: Mapping[str, int]
    total_length: int
    arrays: Mapping[str, NDArray[Any]]
    runs: Sequence[SortedBands]
    """The sorted bands of the phrases' sketches."""
    vectors: Mapping[str, VectorsView]
    matrices: Mapping[str, Any]
    texts: Mapping[str, Texts]
    hashed_rows: Mapping[str, tuple[HashedRows[Any], Any]]
    """By kind: the map, and the arguments of `HashedRows.folded`."""
    lists: Mapping[str, RowLists[Any]]
    documents: Mapping[str, Document]
    holders: Holders
    extraction_states: Mapping[int, ExtractionState]
    postings: Postings
    passages: int
    name_postings: Postings
    names: int


def capture(index: LiveIndex, commit: int, time: float) -> CheckpointCapture | None:
    """Captures the present index. Returns None if too many of its rows were purged.

    The caller holds the write lock, 50 ms for a million phrases, and prevents folding until `swap_in_files`.
    """
    rows = {"passages": len(index.passages), "phrases": len(index.phrases), "triples": len(index.predicates)}
    if index.purged_rows > MAX_PURGED_SHARE * sum(rows.values()):
        return None
    arrays: dict[str, NDArray[Any]] = {f"{name}-ids": index.ids[name].view() for name in KINDS}
    arrays["phrases-signs"], arrays["phrases-sketches"] = index.sketches.signs(), index.sketches.tail.rows.view()
    arrays["phrases-linkable"] = index.linkable.view()
    arrays["phrases-crowded"] = index.crowding.rows.view().array()
    arrays["crowding-counts"] = index.crowding.counts.copy()
    arrays["triples-ends"], arrays["triples-statements"] = index.triple_ends.view(), index.statements.view()
    for name in ("passage", "phrase", "triple", "name"):
        arrays[f"{name}-counts"] = getattr(index, f"{name}_counts").view().array()
    return CheckpointCapture(
        commit,
        time,
        index.dim,
        dict(index.next_id),
        index.total_length,
        arrays,
        index.sketches.runs,
        {name: vectors.view() for name, vectors in index.vectors.items()},
        {name: matrix.view(index.shape(name)) for name, matrix in index.matrices.items()},
        {name: texts.frozen() for name, texts in texts_of(index).items()},
        {name: (rows, rows.begin_fold()) for name, rows in index.folded_rows.items()},
        {"effective": index.effective.copy(), "extracted": index.extracted.copy()},
        index.documents.copy(),
        index.holders.copy(),
        dict(index.extraction_states),
        index.postings,
        rows["passages"],
        index.name_postings,
        len(index.names),
    )


def texts_of(index: LiveIndex) -> dict[str, Texts]:
    """Returns the columns of texts by the name of their files."""
    passages = index.passages
    columns = passages.ids, passages.titles, passages.texts, index.phrases, index.predicates, index.names
    return dict(zip(KIND_OF_TEXTS, columns, strict=True))
