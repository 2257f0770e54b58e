"""Personalized PageRank from few starts by forward push. The cost depends on the number of reached nodes, not on the size of
the graph.

Source: Andersen, Chung and Lang, "Local Graph Partitioning using PageRank Vectors" (2006), section 3. With M = (1 - d)(I - d
P)⁻¹ (notation of `chebyshev`), PageRank is M r. The push maintains two vectors, the estimate p and the residual r', so that M r
= p + M r' at all times. A push at node u moves (1 - d) r'(u) to p(u), and d r'(u) A(v, u) / D(u) to the residual of each
neighbour v. Each round pushes all nodes with a residual above ε D(u) at once, so the result does not depend on the numbering of
the nodes.

Each node has its own error bound. A is symmetric, so P D = D and M D = D. With ρ the largest r'(u) / D(u), r' ≤ ρ D and hence 0
≤ M r' ≤ ρ D. The returned estimate is p + (1 - d) r', which lacks d P M r', and so

    0 ≤ PageRank(u) - estimate(u) ≤ d ρ D(u).

Nodes that were not reached have the estimate 0 and the same bound.

Reached nodes are numbered in the order of arrival (`ReachedNodes`), so the push's arrays are contiguous, whatever the size of
the graph. Only the numbers themselves are stored in an array over all nodes. This array is reused, because allocating its pages
would cost more than the push.
"""

import threading
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.pagerank.chebyshev import unscaled_sum
from memory.retrieval.passage_weights import Floats

Nodes = NDArray[np.int64]
SPARE_SHARE = 8
"""An array gets 1/8 spare length, so that a query after the next commit can reuse it."""
KEPT_ARRAYS = 2
"""Number of arrays kept for later queries; each takes 38 MB for ten million nodes."""


class ReachedNodes:
    """Numbers the nodes that one push reaches. `close` returns the array for reuse."""

    def __init__(self, size: int) -> None:
        """`size`: number of nodes of the graph."""
        self._places = _spare.take(size)
        """One plus the number of each reached node; 0 for all other nodes."""
        self.nodes: Nodes = np.empty(0, np.int64)
        """The reached nodes, in the order of their numbers."""

    def numbers_of(self, nodes: Nodes) -> Nodes:
        """Returns the numbers of `nodes`, which may contain repetitions. A node without a number gets the next number."""
        places = self._places[nodes]
        new = places == 0
        if new.any():
            fresh = each_once(nodes[new])
            first = len(self.nodes) + 1
            # `nodes` is extended first, so that `close` clears every entry even if the next line fails.
            self.nodes = np.concatenate([self.nodes, fresh])
            self._places[fresh] = np.arange(first, first + len(fresh))
            places[new] = self._places[nodes[new]]
        return places.astype(np.int64) - 1

    def close(self) -> None:
        """Clears the array and returns it for reuse. The object must not be used afterwards."""
        self._places[self.nodes] = 0
        _spare.give(self._places)


class _SpareArrays:
    """Unused arrays of zeros."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[NDArray[np.int32]] = []

    def take(self, size: int) -> NDArray[np.int32]:
        with self._lock:
            self._kept = [each for each in self._kept if len(each) >= size]
            if self._kept:
                return self._kept.pop()
        return np.zeros(size + size // SPARE_SHARE, np.int32)

    def give(self, array: NDArray[np.int32]) -> None:
        with self._lock:
            self._kept = [*self._kept, array][-KEPT_ARRAYS:]


_spare = _SpareArrays()


def each_once(numbers: NDArray[Any]) -> NDArray[Any]:
    """Returns the distinct `numbers` in ascending order."""
    ordered = np.sort(numbers)
    if len(ordered) < 2:
        return ordered
    once: NDArray[Any] = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    return once


class PushedGraph(Protocol):
    """A symmetric matrix of edge weights that returns the edges of given nodes."""

    @property
    def size(self) -> int: ...

    def degrees_of(self, nodes: Nodes, /) -> Floats:
        """Returns the weighted degree of each of `nodes`."""
        ...

    def spread(self, nodes: Nodes, amounts: Floats, /) -> tuple[Nodes, Floats]:
        """Computes A[:, nodes] @ amounts; returns the receiving nodes, possibly with repetitions, and the received amounts."""
        ...


@dataclass(frozen=True, slots=True)
class PushEstimate:
    """Estimates of PageRank: the distinct reached `nodes`, and their `ranks`, shape (len(nodes),). The estimate of every other
    node is 0.

    A node's exact rank exceeds its estimate by 0 to `ratio` times the node's degree.
    """

    nodes: Nodes
    ranks: Floats
    ratio: float


class ForwardPush:
    """Forward push from one reset vector.

    `refine` continues from the previous state until the estimate has the requested precision.
    """

    def __init__(self, graph: PushedGraph, starts: Nodes, weights: Floats, damping: float) -> None:
        """`starts`: distinct nodes; `weights`: their reset weights, not negative and not all zero; both of shape (k,)."""
        self._graph = graph
        self._damping = damping
        self._reached = ReachedNodes(graph.size)
        # One value per reached node.
        self._residual: Floats = np.empty(0)
        self._rank: Floats = np.empty(0)
        self._degree: Floats = np.empty(0)
        weights = weights / weights.sum()
        numbers = self._reach(starts)
        self._residual[numbers] = weights
        self._total = unscaled_sum(weights, self._degree[numbers], damping)
        self.work = 0.0
        """Cost of all pushes: the sum of the degrees of the pushed nodes, once per push."""

    def __enter__(self) -> "ForwardPush":
        return self

    def __exit__(self, *_: object) -> None:
        self._reached.close()

    def refine(self, epsilon: float, max_work: float) -> PushEstimate | None:
        """Pushes until every node's residual is at most `epsilon` times its degree.

        Returns None if this costs more than `max_work`.
        """
        seen = np.arange(len(self._residual))
        while True:
            hot = seen[self._residual[seen] > epsilon * self._degree[seen]]
            if not len(hot):
                return self._estimate()
            hot = each_once(hot)
            pushed, degree = self._residual[hot], self._degree[hot]
            self._residual[hot] = 0.0
            self._rank[hot] += (1.0 - self._damping) * pushed
            linked = degree > 0
            hot, pushed, degree = hot[linked], pushed[linked], degree[linked]
            self.work += float(degree.sum())
            if self.work > max_work:
                return None
            nodes, amounts = self._graph.spread(self._reached.nodes[hot], self._damping * pushed / degree)
            seen = self._reach(nodes)
            np.add.at(self._residual, seen, amounts)

    def _reach(self, nodes: Nodes) -> Nodes:
        """Returns the numbers of `nodes`. A node that is reached for the first time gets the next number."""
        before = len(self._residual)
        numbers = self._reached.numbers_of(nodes)
        new = self._reached.nodes[before:]
        self._residual = np.concatenate([self._residual, np.zeros(len(new))])
        self._rank = np.concatenate([self._rank, np.zeros(len(new))])
        self._degree = np.concatenate([self._degree, self._graph.degrees_of(new)])
        return numbers

    def _estimate(self) -> PushEstimate:
        # Rounding may leave small negative values after weights were subtracted.
        ranks = np.maximum(self._rank + (1.0 - self._damping) * self._residual, 0.0) / self._total
        ratios = np.divide(self._residual, self._degree, out=np.zeros(len(ranks)), where=self._degree > 0)
        ratio = float(ratios.max(initial=0.0))
        return PushEstimate(self._reached.nodes, ranks, self._damping * ratio / self._total)
