"""Converts the edges of a snapshot's matrices to entries of one matrix over phrases and passages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.delta_csr import MatrixView
from store.index.triple_change import Entries, phrase_edges

MIN_WEIGHT = 1e-9
"""Minimum weight of an edge; a smaller weight is a rounding residue of weights added and removed."""


@dataclass(frozen=True, slots=True)
class EdgeWeights:
    """Factor of each kind of edge in the walk: the weight of an edge is multiplied by the factor; 0 excludes the kind."""

    relation: float
    mention: float
    synonym: float
    context: float = 0.0
    occurrence: float = 0.0
    """Factor of extra edges between passages and phrases. The weight of such an edge is this factor times the number of the
    passage's triples with the phrase."""


@dataclass(frozen=True, slots=True)
class Graph:
    """The parts of a snapshot that a walk needs. A walk refers to these parts rather than to the snapshot, because the snapshot
    refers to its walks."""

    n_phrases: int
    n_passages: int
    triple_ends: NDArray[np.int32]
    is_statement: NDArray[np.bool_]
    relation: MatrixView
    mention: MatrixView
    synonym: MatrixView
    context: MatrixView
    incidence: MatrixView


def walked_matrices(graph: Graph, weights: EdgeWeights) -> dict[str, tuple[MatrixView, float]]:
    """Returns the matrix and the factor of each kind of edge; kinds with factor 0 are omitted."""
    found = {
        name: (getattr(graph, name), getattr(weights, name)) for name in ("relation", "mention", "synonym", "context")
    }
    found["occurrence"] = graph.incidence, weights.occurrence
    return {name: each for name, each in found.items() if each[1]}


def changed_entries(
    graph: Graph, weights: EdgeWeights, begins: Mapping[str, int] | None = None, ends: Mapping[str, int] | None = None
) -> Entries:
    """Returns the changes of the matrices as entries, converted by `edge_entries`. For each kind, includes only the changes
    numbered from `begins` to before `ends`; by default, all changes."""
    parts = []
    for name, (view, factor) in walked_matrices(graph, weights).items():
        part = slice(begins[name] if begins else 0, ends[name] if ends else view.change_count)
        if part.start < part.stop:
            rows, cols, values = (each[part] for each in view.changes)
            parts.append((name, rows, cols, values, factor))
    return edge_entries(parts, graph.triple_ends, graph.n_phrases)


def contributed_entries(graph: Graph, weights: EdgeWeights, passages: NDArray[Any], phrases: NDArray[Any]) -> Entries:
    """Returns the weights that the passages in `passages` contribute, and the synonym edges of `phrases`. No other passage may
    contain these phrases.

    A passage contributes its own edges, and the relation and mention edges of its triples.
    """
    rows, triples, counts = graph.incidence.entries(passages)
    parts = [("occurrence", rows, triples, counts, weights.occurrence)]
    for kind, entries in phrase_edges(graph.triple_ends[triples], graph.is_statement[triples], counts).items():
        parts.append((kind, *entries, getattr(weights, kind)))
    if weights.context:
        parts.append(("context", *graph.context.entries(passages), weights.context))
    if weights.synonym and len(phrases):
        ones, others, near = graph.synonym.entries(phrases)
        back = ~np.isin(others, phrases)
        both = np.concatenate([ones, others[back]]), np.concatenate([others, ones[back]])
        parts.append(("synonym", *both, np.concatenate([near, near[back]]), weights.synonym))
    return edge_entries(parts, graph.triple_ends, graph.n_phrases)


def edge_entries(parts: Sequence[tuple[str, Any, Any, Any, float]], ends: NDArray[np.int32], phrases: int) -> Entries:
    """Converts `parts`, each (kind, rows, columns, values, factor), to entries (row, column, weight) in both directions.

    Passages are numbered after the phrases. `ends`: phrase rows of the triples' subjects and objects, shape (triples, 2).
    """
    rows_, cols_, values_ = [], [], []
    for name, rows, cols, values, factor in parts:
        if name == "occurrence":
            rows, cols, values = _passage_phrase(rows, cols, values, ends)
        if name in ("context", "occurrence"):
            passages = rows.astype(np.int64) + phrases
            rows, cols, values = (
                np.concatenate([passages, cols]),
                np.concatenate([cols, passages]),
                np.concatenate([values, values]),
            )
        rows_.append(rows)
        cols_.append(cols)
        values_.append(values * factor)
    if not rows_:
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0)
    return np.concatenate(rows_), np.concatenate(cols_), np.concatenate(values_)


def _passage_phrase(rows: Any, cols: Any, values: Any, ends: NDArray[np.int32]) -> tuple[Any, Any, Any]:
    """Converts passage x triple entries to passage x phrase entries. A triple with equal subject and object gives one entry."""
    subjects, objects = ends[cols, 0], ends[cols, 1]
    apart = subjects != objects
    return (
        np.concatenate([rows, rows[apart]]),
        np.concatenate([subjects, objects[apart]]),
        np.concatenate([values, values[apart]]),
    )


def without_dust(matrix: Any) -> Any:
    """Removes entries below `MIN_WEIGHT` from the matrix in place and returns the matrix."""
    matrix.data[np.abs(matrix.data) < MIN_WEIGHT] = 0.0
    matrix.eliminate_zeros()
    return matrix
