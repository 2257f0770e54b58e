"""The weights of a graph's edges in the order of nodes in which a product costs least."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.graph.edge_entries import MIN_WEIGHT
from store.index.graph.joined_base import JoinedBase
from store.index.graph.log_layers import LogLayer
from store.index.graph.node_order import NodeOrder

Vector = NDArray[np.float64]


class BaseOrder:
    """The joined base and the layers on it; nodes are numbered by `order`. Thread-safe: nothing in it changes."""

    def __init__(self, base: JoinedBase, layers: list[LogLayer], order: NodeOrder) -> None:
        self._base = base
        self._layers = layers
        self._order = order
        self.inner, self.outer = order.inner, order.outer
        self.enter, self.leave = order.enter, order.leave
        self.size = order.size
        """How many numbers there are."""

    @cached_property
    def degrees(self) -> Vector:
        """Weighted degree of every node, shape (size,). O(nodes): for who needs all."""
        degrees = np.concatenate([self._base.degrees, np.zeros(self.size - self._order.known)])
        for layer in self._layers:
            degrees[layer.rows] += layer.sums
        degrees[degrees < MIN_WEIGHT] = 0.0
        return degrees

    def degrees_of(self, numbers: NDArray[np.int64]) -> Vector:
        """Those of some nodes, shape (len(numbers),)."""
        found: Vector = np.zeros(len(numbers))
        old = numbers < self._order.known
        if old.all():
            np.take(self._base.degrees, numbers, out=found, mode="clip")
        else:
            found[old] = self._base.degrees[numbers[old]]
        for layer in self._layers:
            places, rows = layer.find(numbers)
            found[places] += layer.sums[rows]
        found[found < MIN_WEIGHT] = 0.0
        return found

    @cached_property
    def total_degree(self) -> float:
        """The degrees of all nodes together."""
        return self._base.total_degree + sum(float(layer.sums.sum()) for layer in self._layers)

    @cached_property
    def passage_degrees(self) -> float:
        """The degrees of all passages together. O(what changed since the base)."""
        changed = sum(float(layer.sums[self._order.is_passage(layer.rows)].sum()) for layer in self._layers)
        return self._base.passage_degrees + changed

    @cached_property
    def largest_passage_degree(self) -> float:
        """Of the degrees of all passages; 0 where there is none."""
        changed = [layer.rows[self._order.is_passage(layer.rows)] for layer in self._layers]
        numbers = np.concatenate([np.empty(0, np.int64), *changed])
        largest = float(self.degrees_of(numbers).max(initial=0.0))
        old, before = numbers[numbers < self._order.known], self._order.base_passages()
        unchanged = self._base.degrees[before]
        if len(old):
            unchanged = unchanged.copy()
            unchanged[old - before.start] = 0.0
        return max(largest, float(unchanged.max(initial=0.0)))

    def edges(self, numbers: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], Any]]:
        """What is to be added up for the edges of some nodes (none twice): (places, entries), where `entries`, a CSR, has a
        row for each of the `places` among `numbers`. O(the edges)."""
        old = np.flatnonzero(numbers < self._order.known)
        parts = [(old, self._base.matrix[numbers[old]])]
        for layer in self._layers:
            places, rows = layer.find(numbers)
            if len(places):
                parts.append((places, layer.of(rows)))
        return parts

    def spread(self, numbers: NDArray[np.int64], amounts: Vector) -> tuple[NDArray[np.int64], Vector]:
        """A[:, numbers] @ amounts: nodes, some of them more than once, and what each gets.

        `numbers` (none twice) and `amounts` have shape (k,). O(the edges of these nodes).
        """
        parts = self.edges(numbers)
        reached = np.concatenate([part.indices.astype(np.int64) for _, part in parts])
        gets = [part.data * np.repeat(amounts[places], np.diff(part.indptr)) for places, part in parts]
        return reached, np.concatenate(gets)

    def matvec(self, x: NDArray[Any]) -> NDArray[Any]:
        """A @ x; both of shape (size,). In float32 where `x` is."""
        known = self._order.known
        product: NDArray[Any] = (self._base.rough if x.dtype == np.float32 else self._base.exact) @ x[:known]
        if known < self.size:
            product = np.concatenate([product, np.zeros(self.size - known, product.dtype)])
        for layer in self._layers:
            layer.add_product(x, product)
        return product
