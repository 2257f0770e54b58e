"""The edge weights as of one commit. Nodes are numbered as in the snapshot: phrases by row, then passages."""

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from store.index.graph.base_order import BaseOrder, Vector
from store.index.graph.change_layers import ChangeLayer
from store.index.graph.edge_entries import (
    MIN_WEIGHT,
    EdgeWeights,
    Graph,
    changed_entries,
    contributed_entries,
    without_dust,
)
from store.index.graph.joined_base import joined_bases
from store.index.graph.node_order import NodeOrder
from store.index.triple_change import Entries


class Adjacency:
    """The edge weights as of one commit. Immutable and therefore thread-safe."""

    def __init__(self, graph: Graph, weights: EdgeWeights) -> None:
        self.nodes = graph.n_phrases + graph.n_passages
        self._phrases = graph.n_phrases
        self._graph, self._weights = graph, weights
        self._base = joined_bases.get(graph, weights)
        self._order = NodeOrder((self._base.phrases, self._base.passages), graph.n_phrases, graph.n_passages)
        self._layers = self._base.layers.of(graph, weights, self._order)
        self._taken_away: list[Entries] = []
        self.inside = BaseOrder(self._base, self._layers, self._order)
        """The same weights in the node order in which products are fastest, for callers that compute many products."""

    def without(self, passages: NDArray[np.int64], phrases: NDArray[np.int64]) -> "Adjacency":
        """Returns the graph without `passages` and `phrases`; no other passage may contain these phrases. Takes O(edges of
        these nodes) time."""
        rows, cols, weights = contributed_entries(self._graph, self._weights, passages, phrases)
        other = copy(self)
        other.__dict__.pop("degrees", None)
        other._taken_away = [*self._taken_away, (rows, cols, -weights)]
        other._layers = [*self._layers, ChangeLayer(other._taken_away[-1], self._order)]
        other.inside = BaseOrder(self._base, other._layers, self._order)
        return other

    @cached_property
    def degrees(self) -> Vector:
        """Weighted degree of every node, shape (nodes,). Takes O(nodes) time."""
        return self.inside.leave(self.inside.degrees)

    def among(self, nodes: NDArray[np.int64]) -> Any:
        """Returns the weights between `nodes` (distinct) as a CSR in the order of `nodes`. Takes O(nodes of the graph + edges
        of `nodes`) time."""
        place = np.full(self.inside.size, -1)
        numbers = self.inside.inner(nodes)
        place[numbers] = np.arange(len(nodes))
        rows, cols, values = [], [], []
        for at, part in self.inside.edges(numbers):
            to = place[part.indices]
            rows.append(np.repeat(at, np.diff(part.indptr))[to >= 0])
            cols.append(to[to >= 0])
            values.append(part.data[to >= 0])
        entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))
        return without_dust(sparse.csr_array(entries, shape=(len(nodes), len(nodes))))

    def neighbours(self, nodes: NDArray[np.int64]) -> Entries:
        """Returns (node, neighbour, weight) of every edge of `nodes` (distinct), by node and neighbour. Takes O(edges of
        `nodes`) time."""
        parts = self.inside.edges(self.inside.inner(nodes))
        sources = np.concatenate([np.repeat(nodes[at], np.diff(part.indptr)) for at, part in parts])
        others = self.inside.outer(np.concatenate([part.indices.astype(np.int64) for _, part in parts]))
        keys, at = np.unique(sources.astype(np.int64) * self.nodes + others, return_inverse=True)
        sums = np.zeros(len(keys))
        np.add.at(sums, at, np.concatenate([part.data for _, part in parts]))
        keys, sums = keys[sums >= MIN_WEIGHT], sums[sums >= MIN_WEIGHT]
        return keys // max(self.nodes, 1), keys % max(self.nodes, 1), sums

    def merged(self) -> Any:
        """Returns the whole matrix as one CSR of shape (nodes, nodes), without zeros. Takes O(edges of the graph) time."""
        *ends, weights = self._base.entries()
        rows, cols = (self.inside.outer(each.astype(np.int64)) for each in ends)
        parts = zip((rows, cols, weights), changed_entries(self._graph, self._weights), *self._taken_away, strict=True)
        rows, cols, values = (np.concatenate(part) for part in parts)
        whole = sparse.csr_array((values, (rows, cols)), shape=(self.nodes, self.nodes))
        whole.sum_duplicates()
        return without_dust(whole)
