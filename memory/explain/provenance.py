"""Provenance: the triples of an edge of the graph, and the passages that state them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.explain.explanation import EdgeProvenance, StatedTriple
from store.index.delta_csr import MatrixView
from store.snapshot import Snapshot


def phrase_edge(snapshot: Snapshot, a: int, b: int) -> EdgeProvenance:
    """Returns the relation edge between two phrases, otherwise their mention edge, otherwise their synonym edge."""
    weight = _entry(snapshot.relation, a, b)
    if not weight:
        mentioned = _entry(snapshot.mention, a, b)
        return EdgeProvenance("mention", mentioned) if mentioned else _synonym_edge(snapshot, a, b)
    ends = snapshot.triple_ends
    links = ((ends[:, 0] == a) & (ends[:, 1] == b)) | ((ends[:, 0] == b) & (ends[:, 1] == a))
    return EdgeProvenance(
        "relation", weight, stated_triples(snapshot, np.flatnonzero(links & snapshot.statement_alive))
    )


def _synonym_edge(snapshot: Snapshot, a: int, b: int) -> EdgeProvenance:
    return EdgeProvenance("synonym", _entry(snapshot.synonym, a, b))


def context_edge(snapshot: Snapshot, phrase: int, passage: int) -> EdgeProvenance:
    """Returns the edge between a passage and a phrase in it."""
    _, triples, _ = snapshot.incidence.entries(np.array([passage]))
    about = (snapshot.triple_ends[triples] == phrase).any(axis=1) & snapshot.is_statement[triples]
    return EdgeProvenance(
        "context",
        1.0,
        tuple(StatedTriple(snapshot.triple(int(row)), (passage,)) for row in sorted(triples[about])),
    )


def stated_triples(snapshot: Snapshot, triples: NDArray[Any] | Sequence[int]) -> tuple[StatedTriple, ...]:
    """Returns the triples with the passages that state them."""
    return tuple(
        StatedTriple(snapshot.triple(row), tuple(passages))
        for row, passages in snapshot.passages_of(np.asarray(triples)).items()
    )


def _entry(view: MatrixView, row: int, column: int) -> float:
    columns, values = view.row(row)
    at = np.flatnonzero(columns == column)
    return float(values[at[0]]) if len(at) else 0.0
