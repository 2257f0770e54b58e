"""The edges of a snapshot's matrices as entries of one matrix over phrases and passages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from store.index.delta_csr import MatrixView

Entries = tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]
"""(row, column, weight) of entries of a matrix; those of one place are to be added up."""

MIN_WEIGHT = 1e-9
"""Less is no edge: what rounding leaves of weights that were added and taken away again."""


@dataclass(frozen=True, slots=True)
class EdgeWeights:
    """How much an edge counts in the walk: its own weight times the factor of its kind; 0 leaves the kind out."""

    relation: float
    mention: float
    synonym: float
    context: float = 0.0
    occurrence: float = 0.0
    """Passage-phrase edges again, weighted by how many triples the passage states about the phrase."""


class Graph(Protocol):
    """What a walk needs of a snapshot."""

    @property
    def n_phrases(self) -> int: ...
    @property
    def n_passages(self) -> int: ...
    @property
    def triple_ends(self) -> NDArray[np.int32]: ...
    @property
    def is_statement(self) -> NDArray[np.bool_]: ...
    @property
    def relation(self) -> MatrixView: ...
    @property
    def mention(self) -> MatrixView: ...
    @property
    def synonym(self) -> MatrixView: ...
    @property
    def context(self) -> MatrixView: ...
    @property
    def incidence(self) -> MatrixView: ...


def walked_matrices(graph: Graph, weights: EdgeWeights) -> dict[str, tuple[MatrixView, float]]:
    """By kind of edge: the matrix that has them, and the factor of their weights."""
    views = {
        "relation": graph.relation,
        "mention": graph.mention,
        "synonym": graph.synonym,
        "context": graph.context,
    }
    found = {name: (view, getattr(weights, name)) for name, view in views.items()}
    found["occurrence"] = graph.incidence, weights.occurrence
    return {name: each for name, each in found.items() if each[1]}


def log_entries(
    graph: Graph, weights: EdgeWeights, begins: Mapping[str, int] | None = None, ends: Mapping[str, int] | None = None
) -> Entries:
    """What the logs add, as `edge_entries`: from the entries `begins` of each kind to `ends`, or all."""
    parts = []
    for name, (view, factor) in walked_matrices(graph, weights).items():
        part = slice(begins[name] if begins else 0, ends[name] if ends else view.log_length)
        if part.start < part.stop:
            rows, cols, values = (each[part] for each in view.log)
            parts.append((name, rows, cols, values, factor))
    return edge_entries(parts, graph.triple_ends, graph.n_phrases)


def stated_entries(graph: Graph, weights: EdgeWeights, passages: NDArray[Any], phrases: NDArray[Any]) -> Entries:
    """What some passages add to the weights: their own edges, the relation and mention edges of their triples, and the synonym
    edges of `phrases`, which no other passages hold."""
    rows, triples, counts = graph.incidence.entries(passages)
    subjects, objects = graph.triple_ends[triples].T
    apart, is_statement = subjects != objects, graph.is_statement[triples]
    parts = [("occurrence", rows, triples, counts, weights.occurrence)]
    for kind, factor, of_kind in (
        ("relation", weights.relation, apart & is_statement),
        ("mention", weights.mention, apart & ~is_statement),
    ):
        ones, others, stated = subjects[of_kind], objects[of_kind], counts[of_kind]
        both = np.concatenate([ones, others]), np.concatenate([others, ones])
        parts.append((kind, *both, np.concatenate([stated, stated]), factor))
    if weights.context:
        parts.append(("context", *graph.context.entries(passages), weights.context))
    if weights.synonym and len(phrases):
        ones, others, near = graph.synonym.entries(phrases)
        back = ~np.isin(others, phrases)
        both = np.concatenate([ones, others[back]]), np.concatenate([others, ones[back]])
        parts.append(("synonym", *both, np.concatenate([near, near[back]]), weights.synonym))
    return edge_entries(parts, graph.triple_ends, graph.n_phrases)


def edge_entries(parts: Sequence[tuple[str, Any, Any, Any, float]], ends: NDArray[np.int32], phrases: int) -> Entries:
    """(row, column, weight) of every entry of (kind, rows, columns, values, factor), in both directions; passages are
    numbered after `phrases`. `ends`: phrase rows of the triples' subjects and objects, shape (triples, 2)."""
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
    """Entries passage x triple as entries passage x phrase; a triple about itself holds its phrase once."""
    subjects, objects = ends[cols, 0], ends[cols, 1]
    apart = subjects != objects
    return (
        np.concatenate([rows, rows[apart]]),
        np.concatenate([subjects, objects[apart]]),
        np.concatenate([values, values[apart]]),
    )


def without_dust(matrix: Any) -> Any:
    """The matrix without what is no edge, changed in place."""
    matrix.data[np.abs(matrix.data) < MIN_WEIGHT] = 0.0
    matrix.eliminate_zeros()
    return matrix
