"""The edge weights in the node order in which products are fastest."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.graph.change_layers import ChangeLayer
from store.index.graph.edge_entries import MIN_WEIGHT
from store.index.graph.joined_base import JoinedBase
from store.index.graph.node_order import NodeOrder

Vector = NDArray[np.float64]


class BaseOrder:
    """The joined base and its layers; `order` numbers the nodes. Immutable and therefore thread-safe."""

    def __init__(self, base: JoinedBase, layers: list[ChangeLayer], order: NodeOrder) -> None:
        self._base = base
        self._layers = layers
        self._order = order
        self.inner, self.outer = order.inner, order.outer
        self.enter, self.leave = order.enter, order.leave
        self.size = order.size
        """See `NodeOrder.size`."""

    @cached_property
    def degrees(self) -> Vector:
        """Weighted degree of every node, shape (size,). Takes O(nodes) time."""
        degrees = np.concatenate([self._base.degrees, np.zeros(self.size - self._order.known)])
        for layer in self._layers:
            degrees[layer.rows] += layer.sums
        degrees[degrees < MIN_WEIGHT] = 0.0
        return degrees

    def degrees_of(self, numbers: NDArray[np.int64]) -> Vector:
        """Returns the weighted degrees of the nodes `numbers`, shape (len(numbers),)."""
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
        """Sum of the degrees of all nodes."""
        return self._base.total_degree + sum(float(layer.sums.sum()) for layer in self._layers)

    @cached_property
    def passage_degrees(self) -> float:
        """Sum of the degrees of all passages. Takes O(changes since the base) time."""
        changed = sum(float(layer.sums[self._order.is_passage(layer.rows)].sum()) for layer in self._layers)
        return self._base.passage_degrees + changed

    @cached_property
    def largest_passage_degree(self) -> float:
        """Largest degree of a passage; 0 if there is no passage."""
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
        """Returns the edges of `numbers` (distinct nodes) as summands (places, entries). `entries` is a CSR with one row for
        each of `places`, which are positions in `numbers`.

        Takes O(edges of `numbers`) time.
        """
        old = np.flatnonzero(numbers < self._order.known)
        parts = [(old, self._base.of(numbers[old]))]
        for layer in self._layers:
            places, rows = layer.find(numbers)
            if len(places):
                parts.append((places, layer.of(rows)))
        return parts

    def spread(self, numbers: NDArray[np.int64], amounts: Vector) -> tuple[NDArray[np.int64], Vector]:
        """Computes A[:, numbers] @ amounts; returns the receiving nodes, possibly repeated, and the received amounts.

        `numbers` (distinct) and `amounts` have shape (k,). Takes O(edges of these nodes) time.
        """
        parts = self.edges(numbers)
        reached = np.concatenate([part.indices.astype(np.int64) for _, part in parts])
        gets = [part.data * np.repeat(amounts[places], np.diff(part.indptr)) for places, part in parts]
        return reached, np.concatenate(gets)

    def matvec(self, x: NDArray[Any]) -> NDArray[Any]:
        """Returns A @ x; `x` and the result have shape (size,). The product is in float32 if `x` is float32."""
        known = self._order.known
        product: NDArray[Any] = self._base.product(x[:known])
        if known < self.size:
            product = np.concatenate([product, np.zeros(self.size - known, product.dtype)])
        for layer in self._layers:
            layer.add_product(x, product)
        return product
