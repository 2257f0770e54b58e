"""The graph as a random walk sees it: one symmetric matrix of edge weights over all phrases, then all passages.

A product with it is all that PageRank asks for, many times a query. The bases of a snapshot's matrices are joined into one
CSR the first time they are walked, and that is shared by all snapshots which have the same bases; what changed since is a
second, small CSR. The sum of the two products is exact: joining adds nothing up but weights that lie between the same two
nodes.
"""

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from store.index.delta_csr import MatrixView
from store.index.matrix_product import RowBlocks

Vector = NDArray[np.float64]

Entries = tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]
"""(row, column, weight) of entries of a matrix; those of one place are to be added up."""

MIN_WEIGHT = 1e-9
"""Less is no edge: what rounding leaves of weights that were added and taken away again."""
CACHED_BASES = 4
"""Joined bases in the cache: those of the present memory for two sets of weights, and the two before a fold."""


@dataclass(frozen=True, slots=True)
class EdgeWeights:
    """How much an edge counts in the walk: its own weight times the factor of its kind; 0 leaves the kind out."""

    relation: float
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
    def relation(self) -> MatrixView: ...
    @property
    def synonym(self) -> MatrixView: ...
    @property
    def context(self) -> MatrixView: ...
    @property
    def incidence(self) -> MatrixView: ...


class Adjacency:
    """The weights at one commit. Thread-safe: nothing in it changes."""

    def __init__(self, graph: Graph, weights: EdgeWeights) -> None:
        self.nodes = graph.n_phrases + graph.n_passages
        self._phrases = graph.n_phrases
        self._base = _joined.get(graph, weights)
        self._delta = _delta(graph, weights)
        self.inside = BaseOrder(self._base, self._delta, self._phrases, self.nodes)
        """The same in the order of nodes in which a product costs least: for who makes many."""
        self.degrees: Vector = self.inside.leave(self.inside.degrees)
        """Weighted degree of every node, shape (nodes,)."""

    def matvec(self, x: NDArray[Any]) -> NDArray[Any]:
        """A @ x; both of shape (nodes,). In float32 where `x` is."""
        return self.inside.leave(self.inside.matvec(self.inside.enter(x)))

    def among(self, nodes: NDArray[np.int64]) -> Any:
        """The weights between `nodes` (none twice), as a CSR over them in their order. O(nodes of the graph + their edges)."""
        base = self._base
        known = (nodes < base.phrases) | ((nodes >= self._phrases) & (nodes < self._phrases + base.passages))
        at = np.flatnonzero(known)
        inner = np.where(nodes[at] < base.phrases, nodes[at], nodes[at] - (self._phrases - base.phrases))
        part = base.matrix[inner][:, inner].tocoo()
        place = np.full(self.nodes, -1)
        place[nodes] = np.arange(len(nodes))
        rows, cols, values = self._delta
        here = (place[rows] >= 0) & (place[cols] >= 0)
        rows = np.concatenate([at[part.row], place[rows[here]]])
        cols = np.concatenate([at[part.col], place[cols[here]]])
        values = np.concatenate([part.data, values[here]])
        return _without_dust(sparse.csr_array((values, (rows, cols)), shape=(len(nodes), len(nodes))))

    def neighbours(self, nodes: NDArray[np.int64]) -> Entries:
        """(node, neighbour, weight) of every edge of `nodes` (none twice), by node and neighbour. O(their edges + log)."""
        base, shift = self._base, self._phrases - self._base.phrases
        old = (nodes < base.phrases) | ((nodes >= self._phrases) & (nodes < self._phrases + base.passages))
        known = nodes[old]
        part = base.matrix[np.where(known < base.phrases, known, known - shift)].tocoo()
        rows, cols, values = self._delta
        here = np.isin(rows, nodes)
        entries = (
            np.concatenate([known[part.row], rows[here]]),
            np.concatenate([np.where(part.col < base.phrases, part.col, part.col + shift), cols[here]]),
            np.concatenate([part.data, values[here]]),
        )
        keys, at = np.unique(entries[0].astype(np.int64) * self.nodes + entries[1], return_inverse=True)
        sums = np.zeros(len(keys))
        np.add.at(sums, at, entries[2])
        keys, sums = keys[sums >= MIN_WEIGHT], sums[sums >= MIN_WEIGHT]
        return keys // max(self.nodes, 1), keys % max(self.nodes, 1), sums

    def merged(self) -> Any:
        """The whole matrix as one CSR of shape (nodes, nodes), without zeros. O(everything)."""
        joined = self._base.matrix.tocoo()
        shift = self._phrases - self._base.phrases
        rows = np.where(joined.row < self._base.phrases, joined.row, joined.row + shift)
        cols = np.where(joined.col < self._base.phrases, joined.col, joined.col + shift)
        parts = zip((rows, cols, joined.data), self._delta, strict=True)
        rows, cols, values = (np.concatenate(part) for part in parts)
        whole = sparse.csr_array((values, (rows, cols)), shape=(self.nodes, self.nodes))
        whole.sum_duplicates()
        return _without_dust(whole)


class BaseOrder:
    """The weights with what the joined base knows in front: its phrases and passages, then the later phrases and passages.

    So a product takes the base's part of a vector and leaves its part of the answer where they are; what changed since is
    added to the few nodes that it touches.
    """

    def __init__(self, base: "_JoinedBase", delta: Entries, phrases: int, nodes: int) -> None:
        self._base = base
        self._known = base.phrases + base.passages
        self._later_phrases, self._nodes = phrases - base.phrases, nodes
        rows, cols, values = delta
        self._rows, at = np.unique(self._place(rows), return_inverse=True)
        shape = (len(self._rows), nodes)
        self._exact = sparse.csr_array((values, (at, self._place(cols))), shape=shape) if len(rows) else None
        self._rough = None if self._exact is None else self._exact.astype(np.float32)
        degrees = np.concatenate([base.degrees, np.zeros(nodes - self._known)])
        if self._exact is not None:
            degrees[self._rows] += self._exact.sum(axis=1)
        degrees[degrees < MIN_WEIGHT] = 0.0
        self.degrees: Vector = degrees

    @cached_property
    def total_degree(self) -> float:
        """The degrees of all nodes together."""
        return float(self.degrees.sum())

    def _place(self, nodes: NDArray[Any]) -> NDArray[Any]:
        phrases, later = self._base.phrases, self._later_phrases
        old_passage = (nodes >= phrases + later) & (nodes < self._known + later)
        later_phrase = (nodes >= phrases) & (nodes < phrases + later)
        placed: NDArray[Any] = nodes - later * old_passage + self._base.passages * later_phrase
        return placed

    def spread(self, nodes: NDArray[np.int64], amounts: Vector, out: Vector) -> NDArray[np.int64]:
        """Adds A[:, nodes] @ amounts to `out`, and returns the nodes that it changed, some of them more than once.

        `nodes` (none twice) and `amounts` have shape (k,), `out` shape (nodes,). O(the edges of `nodes`).
        """
        old = nodes < self._known
        parts = [(self._base.matrix[nodes[old]], amounts[old])]
        if self._exact is not None:
            at = np.minimum(np.searchsorted(self._rows, nodes), len(self._rows) - 1)
            changed = self._rows[at] == nodes
            parts.append((self._exact[at[changed]], amounts[changed]))
        reached = []
        for part, amount in parts:
            columns = part.indices.astype(np.int64)
            np.add.at(out, columns, part.data * np.repeat(amount, np.diff(part.indptr)))
            reached.append(columns)
        return np.concatenate(reached)

    def inner(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """What nodes are numbered here."""
        placed: NDArray[np.int64] = self._place(nodes)
        return placed

    def outer(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """What nodes of this order are numbered by the snapshot."""
        old_passage = (nodes >= self._base.phrases) & (nodes < self._known)
        later_phrase = (nodes >= self._known) & (nodes < self._known + self._later_phrases)
        placed: NDArray[np.int64] = nodes + self._later_phrases * old_passage - self._base.passages * later_phrase
        return placed

    def matvec(self, x: NDArray[Any]) -> NDArray[Any]:
        """A @ x; both of shape (nodes,). In float32 where `x` is."""
        rough = x.dtype == np.float32
        product: NDArray[Any] = (self._base.rough if rough else self._base.exact) @ x[: self._known]
        if self._known < self._nodes:
            product = np.concatenate([product, np.zeros(self._nodes - self._known, product.dtype)])
        delta = self._rough if rough else self._exact
        if delta is not None:
            product[self._rows] += delta @ x
        return product

    def enter(self, x: NDArray[Any]) -> NDArray[Any]:
        """A vector over the nodes in this order."""
        phrases, later = self._base.phrases, self._later_phrases
        if not later:
            return x
        old = x[phrases + later : self._known + later]
        return np.concatenate([x[:phrases], old, x[phrases : phrases + later], x[self._known + later :]])

    def leave(self, y: NDArray[Any]) -> NDArray[Any]:
        """A vector in this order over the nodes as the snapshot numbers them."""
        phrases, later = self._base.phrases, self._later_phrases
        if not later:
            return y
        new = y[self._known : self._known + later]
        return np.concatenate([y[:phrases], new, y[phrases : self._known], y[self._known + later :]])


def _without_dust(matrix: Any) -> Any:
    matrix.data[np.abs(matrix.data) < MIN_WEIGHT] = 0.0
    matrix.eliminate_zeros()
    return matrix


class _JoinedBase:
    """One CSR over `phrases` phrases and `passages` passages: those that the bases know."""

    def __init__(self, matrix: Any, phrases: int, passages: int) -> None:
        self.matrix = matrix
        self.phrases = phrases
        self.passages = passages
        self.exact = RowBlocks(matrix)
        self.degrees: Vector = self.exact @ np.ones(matrix.shape[1])
        self._lock = threading.Lock()
        self._rough: RowBlocks | None = None

    @property
    def rough(self) -> RowBlocks:
        """The same in float32: half the bytes to read. Made when it is first asked for: only whole walks do."""
        with self._lock:
            if self._rough is None:
                matrix = self.matrix
                values = matrix.data.astype(np.float32)
                self._rough = RowBlocks(sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape))
            return self._rough


def _used(graph: Graph, weights: EdgeWeights) -> list[tuple[str, MatrixView, float]]:
    views = {"relation": graph.relation, "synonym": graph.synonym, "context": graph.context}
    found = [(name, view, getattr(weights, name)) for name, view in views.items()]
    found.append(("occurrence", graph.incidence, weights.occurrence))
    return [each for each in found if each[2]]


def _ends(rows: Any, cols: Any, values: Any, ends: NDArray[np.int32]) -> tuple[Any, Any, Any]:
    """Entries passage x triple as entries passage x phrase; a triple about itself holds its phrase once."""
    subjects, objects = ends[cols, 0], ends[cols, 1]
    apart = subjects != objects
    return (
        np.concatenate([rows, rows[apart]]),
        np.concatenate([subjects, objects[apart]]),
        np.concatenate([values, values[apart]]),
    )


def _entries(parts: Sequence[tuple[str, Any, Any, Any, float]], ends: NDArray[np.int32], phrases: int) -> Entries:
    """(row, column, weight) of every entry, in both directions; passages are numbered after `phrases`."""
    rows_, cols_, values_ = [], [], []
    for name, rows, cols, values, factor in parts:
        if name == "occurrence":
            rows, cols, values = _ends(rows, cols, values, ends)
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


def _square(entries: Entries, nodes: int) -> Any:
    rows, cols, values = entries
    # Half the bytes a column takes are half the bytes a product reads.
    index = np.int32 if nodes < np.iinfo(np.int32).max else np.int64
    matrix = sparse.csr_array((values, (rows.astype(index), cols.astype(index))), shape=(nodes, nodes))
    matrix.sum_duplicates()
    return matrix


def _delta(graph: Graph, weights: EdgeWeights) -> Entries:
    """What the logs add."""
    parts = [(name, *view.log, factor) for name, view, factor in _used(graph, weights) if view.log_length]
    return _entries(parts, graph.triple_ends, graph.n_phrases)


class _JoinedCache:
    """The last few joined bases, by the bases they were made of."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[tuple[EdgeWeights, tuple[weakref.ref[Any], ...], _JoinedBase]] = []

    def get(self, graph: Graph, weights: EdgeWeights) -> _JoinedBase:
        used = _used(graph, weights)
        bases = [view.base for _, view, _ in used]
        # Two queries after a fold: the second waits for what the first makes.
        with self._lock:
            self._kept = [each for each in self._kept if all(ref() is not None for ref in each[1])]
            for at, (known, refs, joined) in enumerate(self._kept):
                if known == weights and all(ref() is base for ref, base in zip(refs, bases, strict=True)):
                    self._kept.append(self._kept.pop(at))
                    return joined
            joined = _join(used, graph.triple_ends)
            self._kept.append((weights, tuple(weakref.ref(base) for base in bases), joined))
            del self._kept[:-CACHED_BASES]
            return joined


def _join(used: Sequence[tuple[str, MatrixView, float]], ends: NDArray[np.int32]) -> _JoinedBase:
    phrases = passages = 0
    parts = []
    for name, view, factor in used:
        entries = view.base.tocoo()
        parts.append((name, entries.row, entries.col, entries.data, factor))
        if name == "occurrence":
            passages = max(passages, view.base.shape[0])
            phrases = max(phrases, int(ends[entries.col].max(initial=-1)) + 1)
        else:
            phrases = max(phrases, view.base.shape[1])
            passages = max(passages, view.base.shape[0]) if name == "context" else passages
    matrix = _square(_entries(parts, ends, phrases), phrases + passages)
    return _JoinedBase(matrix, phrases, passages)


_joined = _JoinedCache()
