"""What an edge of the graph says, and who says it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.reasons import Edge, Vouched
from store.matrix import MatrixView
from store.snapshot import Snapshot


def between(snapshot: Snapshot, a: int, b: int) -> Edge:
    """The edge between two phrases: what relates them, else that they are synonyms."""
    weight = _entry(snapshot.relation, a, b)
    if not weight:
        return Edge("synonym", _entry(snapshot.synonym, a, b))
    ends = snapshot.triple_ends
    links = ((ends[:, 0] == a) & (ends[:, 1] == b)) | ((ends[:, 0] == b) & (ends[:, 1] == a))
    return Edge("relation", weight, vouched(snapshot, np.flatnonzero(links & snapshot.triple_alive)))


def held(snapshot: Snapshot, phrase: int, passage: int) -> Edge:
    """The edge between a passage and a phrase that it holds."""
    _, triples, _ = snapshot.incidence.entries(np.array([passage]))
    about = (snapshot.triple_ends[triples] == phrase).any(axis=1)
    return Edge(
        "context",
        1.0,
        tuple(Vouched(snapshot.triple(int(row)), (passage,)) for row in sorted(triples[about])),
    )


def vouched(snapshot: Snapshot, triples: NDArray[Any] | Sequence[int]) -> tuple[Vouched, ...]:
    """The triples with the passages that state them."""
    return tuple(
        Vouched(snapshot.triple(row), tuple(passages))
        for row, passages in snapshot.passages_of(np.asarray(triples)).items()
    )


def _entry(view: MatrixView, row: int, column: int) -> float:
    columns, values = view.row(row)
    at = np.flatnonzero(columns == column)
    return float(values[at[0]]) if len(at) else 0.0
