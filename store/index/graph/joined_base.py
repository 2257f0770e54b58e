"""The bases of a snapshot's matrices, joined into one CSR that all snapshots with the same bases share."""

import threading
import weakref
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from store.index.delta_csr import MatrixView
from store.index.graph.change_layers import ChangeLayers
from store.index.graph.edge_entries import EdgeWeights, Graph, edge_entries, walked_matrices
from store.index.parallel import processors, threads
from store.index.triple_change import Entries

CACHED_BASES = 4
"""Minimum number of cached joined bases: two for the present memory (two sets of weights), and two from before a fold."""

CACHED_BYTES = 1 << 30
"""Further joined bases, for scopes and earlier commits, are cached up to this total size."""


BLOCK_MIN_ENTRIES = 500_000
"""Minimum number of entries of a block: about 0.5 ms of work, compared with 0.1 ms for handing a block to a thread."""


class RowBlocks:
    """A CSR divided into blocks of rows with about equal numbers of entries. The blocks are views that copy nothing.

    scipy releases the GIL during a multiplication, so the blocks are multiplied in parallel. Each row is summed by one thread
    in column order, so the result is bit-identical for any number of threads.
    """

    def __init__(self, matrix: Any, max_blocks: int | None = None) -> None:
        count = min(max_blocks or processors(), max(matrix.nnz // BLOCK_MIN_ENTRIES, 1))
        cuts = np.searchsorted(matrix.indptr, np.linspace(0, matrix.nnz, count + 1)[1:-1])
        bounds = [0, *cuts.tolist(), matrix.shape[0]]
        self._blocks = [matrix] if count == 1 else [_rows(matrix, *pair) for pair in pairwise(bounds)]

    def __matmul__(self, x: NDArray[Any]) -> NDArray[Any]:
        """Returns the product of the matrix and `x`, shape (columns,); the result has shape (rows,)."""
        first, *others = self._blocks
        if not others:
            whole: NDArray[Any] = first @ x
            return whole
        later = [threads().submit(block.__matmul__, x) for block in others]
        return np.concatenate([first @ x, *(part.result() for part in later)])


def _rows(matrix: Any, start: int, stop: int) -> Any:
    first, last = matrix.indptr[start], matrix.indptr[stop]
    block = sparse.csr_array((stop - start, matrix.shape[1]), dtype=matrix.dtype)
    # Attributes are set one by one, because the constructor copies arrays that are views of less than half of another array.
    block.data, block.indices = matrix.data[first:last], matrix.indices[first:last]
    block.indptr = matrix.indptr[start : stop + 1] - first
    return block


class JoinedBase:
    """One CSR over the phrases and passages that the bases contain.

    Its rows are sorted by length: the processor then predicts the end of each row, which halves the time of a product.
    """

    def __init__(self, matrix: Any, places: NDArray[np.int32], phrases: int, passages: int) -> None:
        """`places`: the row in `matrix` of each node."""
        self._matrix = matrix
        self._places = places
        self.phrases = phrases
        self.passages = passages
        self._float64_blocks = RowBlocks(matrix)
        self.degrees: NDArray[np.float64] = self.product(np.ones(matrix.shape[1]))
        self.total_degree = float(self.degrees.sum())
        self.passage_degrees = float(self.degrees[phrases:].sum())
        """Sum of the degrees of all passages."""
        self.layers = ChangeLayers()
        self._lock = threading.Lock()
        self._float32_blocks: RowBlocks | None = None

    @property
    def bytes(self) -> int:
        arrays = self._matrix.data, self._matrix.indices, self._matrix.indptr, self._places, self.degrees
        in_float32 = self._matrix.data.nbytes // 2 if self._float32_blocks is not None else 0
        return sum(array.nbytes for array in arrays) + in_float32

    def product(self, x: NDArray[Any]) -> NDArray[Any]:
        """Returns the matrix @ `x`; both vectors have shape (nodes,). The product is in float32 if `x` is float32."""
        blocks = self._in_float32 if x.dtype == np.float32 else self._float64_blocks
        # `clip` is the fastest mode; all places are within range.
        product: NDArray[Any] = (blocks @ x).take(self._places, mode="clip")
        return product

    def of(self, nodes: NDArray[np.int64]) -> Any:
        """Returns the rows of `nodes` as a CSR."""
        return self._matrix[self._places[nodes]]

    def entries(self) -> Entries:
        """Returns all entries as (node, column, weight)."""
        joined = self._matrix.tocoo()
        nodes = np.empty(len(self._places), np.int64)
        nodes[self._places] = np.arange(len(nodes))
        return nodes[joined.row], joined.col, joined.data

    @property
    def _in_float32(self) -> RowBlocks:
        """The matrix in float32, half as many bytes to read. Built on first use; only walks over the whole graph need it."""
        with self._lock:
            if self._float32_blocks is None:
                matrix = self._matrix
                values = matrix.data.astype(np.float32)
                self._float32_blocks = RowBlocks(
                    sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)
                )
            return self._float32_blocks


class _JoinedCache:
    """Caches the last joined bases, keyed by the bases that they consist of."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[tuple[EdgeWeights, tuple[weakref.ref[Any], ...], JoinedBase]] = []

    def get(self, graph: Graph, weights: EdgeWeights) -> JoinedBase:
        used = walked_matrices(graph, weights)
        bases = [view.base for view, _ in used.values()]
        # If two queries follow a fold, the second query waits for the join that the first one computes.
        with self._lock:
            self._kept = [each for each in self._kept if all(ref() is not None for ref in each[1])]
            for at, (known, refs, joined) in enumerate(self._kept):
                if known == weights and all(ref() is base for ref, base in zip(refs, bases, strict=True)):
                    self._kept.append(self._kept.pop(at))
                    return joined
            joined = _join(used, graph.triple_ends)
            self._kept.append((weights, tuple(weakref.ref(base) for base in bases), joined))
            while len(self._kept) > CACHED_BASES and sum(each.bytes for *_, each in self._kept) > CACHED_BYTES:
                del self._kept[0]
            return joined


def _join(used: dict[str, tuple[MatrixView, float]], ends: NDArray[np.int32]) -> JoinedBase:
    phrases = passages = 0
    parts = []
    for name, (view, factor) in used.items():
        entries = view.base.tocoo()
        parts.append((name, entries.row, entries.col, entries.data, factor))
        if name == "occurrence":
            passages = max(passages, view.base.shape[0])
            phrases = max(phrases, int(ends[entries.col].max(initial=-1)) + 1)
        else:
            phrases = max(phrases, view.base.shape[1])
            passages = max(passages, view.base.shape[0]) if name == "context" else passages
    rows, cols, values = edge_entries(parts, ends, phrases)
    nodes = phrases + passages
    # 32-bit column indices halve the bytes that a product reads.
    index = np.int32 if nodes < np.iinfo(np.int32).max else np.int64
    by_length = np.argsort(np.bincount(rows, minlength=nodes), kind="stable")
    places = np.empty(nodes, np.int32)
    places[by_length] = np.arange(nodes)
    matrix = sparse.csr_array(
        (values, (places[rows].astype(index, copy=False), cols.astype(index, copy=False))), shape=(nodes, nodes)
    )
    matrix.sum_duplicates()
    return JoinedBase(matrix, places, phrases, passages)


joined_bases = _JoinedCache()
