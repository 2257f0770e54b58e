"""Takes the parts of the live index that a checkpoint writes, between two commits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.checkpoint.files import KINDS
from store.index.append_only_arrays import VectorsView
from store.index.bm25 import Postings
from store.index.live_index import LiveIndex
from store.index.synonyms.lsh import Sorted
from store.types import ExtractionState

MAX_PURGED_SHARE = 0.25
"""Share of purged rows from which a checkpoint is not worth their places: the index is rebuilt first."""


@dataclass(frozen=True, slots=True)
class CheckpointCapture:
    """What a checkpoint has, as of one commit: views and shallow copies."""

    commit: int
    time: float
    dim: int
    next_id: Mapping[str, int]
    total_length: int
    arrays: Mapping[str, NDArray[Any]]
    bands: Sorted
    vectors: Mapping[str, VectorsView]
    matrices: Mapping[str, Any]
    lists: Mapping[str, Sequence[NDArray[np.int32] | None]]
    extraction_states: Mapping[int, ExtractionState]
    postings: Postings
    passages: int


def capture(index: LiveIndex, commit: int, time: float) -> CheckpointCapture | None:
    """The index as it is, or None where too much of it was purged. The caller holds the write lock, 50 ms a million phrases."""
    rows = {"passages": len(index.passages), "phrases": len(index.phrases), "triples": len(index.predicates)}
    if index.purged_rows > MAX_PURGED_SHARE * sum(rows.values()):
        return None
    arrays: dict[str, NDArray[Any]] = {f"{name}-ids": index.ids[name].view() for name in KINDS}
    maps: dict[str, Any] = {
        "passages": index.passage_rows,
        "phrases": index.phrase_rows,
        "triples": index.triple_rows,
    }
    for name in KINDS if index.purged_rows else ():
        known = np.zeros(rows[name], np.bool_)
        known[list(maps[name].values())] = True
        arrays[f"{name}-known"] = known
    arrays["phrases-sketches"] = index.sketches.view()
    for name in ("passage", "phrase", "triple"):
        arrays[f"{name}-counts"] = getattr(index, f"{name}_counts").view().array()
    return CheckpointCapture(
        commit,
        time,
        index.dim,
        dict(index.next_id),
        index.total_length,
        arrays,
        index.sketches.bands,
        {name: getattr(index, f"{name[:-1]}_vectors").view() for name in KINDS},
        {name: matrix.view(index.shape(name)) for name, matrix in index.matrices.items()},
        {"effective": list(index.effective), "extracted": list(index.extracted)},
        dict(index.extraction_states),
        index.postings,
        rows["passages"],
    )
