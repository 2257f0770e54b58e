"""The changes of a graph's matrices since the joined base, in layers.

There may be millions of changes, and a query may run after each commit. Changes are therefore grouped into layers. Each layer
is at least four times as large as the next, and later snapshots share the layers. Each snapshot sorts only the changes after
the last layer.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from store.index.graph.edge_entries import EdgeWeights, Graph, changed_entries, walked_matrices
from store.index.graph.node_order import NodeOrder
from store.index.triple_change import Entries

LAYER_MIN_ENTRIES = 4_096
"""Maximum number of changes that each snapshot sorts itself, which takes about a millisecond."""
LAYER_RATIO = 4
"""Minimum ratio of a layer's entries to those of the next layer; below it, the two layers are merged."""
FILTER_SHARE = 8
"""Bytes of a layer's filter per row of the layer. At most 1/8 of the other rows' numbers pass the filter."""
KEPT_MATRICES = 4
"""Number of sets of matrices whose layers are kept: the whole memory's set, and sets of changed scopes with the same bases."""


class ChangeLayer:
    """Changes of a matrix, by row. `NodeOrder` numbers rows and columns; the order may have grown since the layer was made."""

    def __init__(self, entries: Entries, order: NodeOrder) -> None:
        rows, cols, values = entries
        self.rows, at = np.unique(order.inner(rows), return_inverse=True)
        """The rows with entries, ascending."""
        self._width = order.size
        self._exact = sparse.csr_array((values, (at, order.inner(cols))), shape=(len(self.rows), order.size))
        self.sums: NDArray[np.float64] = self._exact.sum(axis=1)
        """Sum of each row's entries, shape (len(rows),)."""
        # A filter by the low bits of the row number: it has false positives, but fits into the processor's cache.
        self._bits = (1 << (FILTER_SHARE * len(self.rows)).bit_length()) - 1
        self._may_have: NDArray[np.bool_] = np.zeros(self._bits + 1, np.bool_)
        self._may_have[self.rows & self._bits] = True

    @cached_property
    def _rough(self) -> Any:
        return self._exact.astype(np.float32)

    def find(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns two arrays: positions in `numbers` of the numbers that have entries here, and their positions in `rows`."""
        places = np.flatnonzero(self._may_have[numbers & self._bits])
        if not len(places):
            return places, places
        wanted = numbers[places]
        rows = np.minimum(np.searchsorted(self.rows, wanted), len(self.rows) - 1)
        found = self.rows[rows] == wanted
        return places[found], rows[found]

    def of(self, rows: NDArray[np.int64]) -> Any:
        """Returns the entries of `rows` as a CSR; `rows` are positions that `find` returned."""
        return self._exact[rows]

    def add_product(self, x: NDArray[Any], product: NDArray[Any]) -> None:
        """Adds the product of this layer and `x` to `product`. The product is in float32 if `x` is float32."""
        matrix = self._rough if x.dtype == np.float32 else self._exact
        product[self.rows] += matrix @ x[: self._width]


@dataclass(frozen=True, slots=True)
class _SharedLayer:
    """A layer, and for each kind of edge the number of the last change in the layer."""

    layer: ChangeLayer
    ends: Mapping[str, int]
    entries: int


class ChangeLayers:
    """The layers on one joined base."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[object, ...], list[_SharedLayer]] = OrderedDict()

    def of(self, graph: Graph, weights: EdgeWeights, order: NodeOrder) -> list[ChangeLayer]:
        """Returns the layers of a graph on this base. The graph may be an earlier snapshot, which has fewer changes."""
        views = {name: view for name, (view, _) in walked_matrices(graph, weights).items()}
        lengths = {name: view.change_count for name, view in views.items()}
        identities = tuple(view.identity for view in views.values())

        def layer(begins: Mapping[str, int]) -> ChangeLayer:
            return ChangeLayer(changed_entries(graph, weights, begins, lengths), order)

        nothing = dict.fromkeys(lengths, 0)
        with self._lock:
            shared = self._kept.pop(identities, [])
            within = [each for each in shared if all(each.ends[name] <= lengths[name] for name in lengths)]
            begins = within[-1].ends if within else nothing
            entries = sum(lengths.values()) - sum(begins.values())
            if len(within) == len(shared) and entries > LAYER_MIN_ENTRIES:
                while within and within[-1].entries < LAYER_RATIO * entries:
                    entries += within.pop().entries
                before = within[-1].ends if within else nothing
                within.append(_SharedLayer(layer(before), lengths, entries))
                shared, begins = within, lengths
            self._kept[identities] = shared
            while len(self._kept) > KEPT_MATRICES:
                self._kept.popitem(last=False)
        found = [each.layer for each in within]
        return found if begins == lengths else [*found, layer(begins)]
