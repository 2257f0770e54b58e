"""Personalized PageRank from few starts, by forward push: it costs what it touches, not what the graph has.

Andersen, Chung and Lang, "Local Graph Partitioning using PageRank Vectors" (2006), section 3. With M = (1 - d)(I - d P)⁻¹ (the
names of `memory.retrieval.ppr`) the PageRank is M r. Two vectors are kept, estimate p and residual r', and M r = p + M r' at
any time. A push at node u moves (1 - d) r'(u) to p(u), and d r'(u) A(v, u) / D(u) to the residual of each neighbour v. Nodes
are pushed in rounds, all at once whose residual is above ε D(u). So the result follows from the graph, not from how its nodes
are numbered.

The bound is one for each node. A is symmetric, so P D = D and M D = D; with ρ the largest r'(u) / D(u), r' ≤ ρ D and hence
0 ≤ M r' ≤ ρ D. What is returned is p + (1 - d) r', which lacks d P M r', and so

    0 ≤ PageRank(u) - estimate(u) ≤ d ρ D(u).

Nodes that were not reached have an estimate of 0 and the same bound.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Float64Vector = NDArray[np.float64]
Nodes = NDArray[np.int64]


class PushedGraph(Protocol):
    """A symmetric matrix of edge weights that tells the edges of some nodes."""

    @property
    def size(self) -> int:
        """How many nodes there are."""
        ...

    def degrees_of(self, nodes: Nodes, /) -> Float64Vector:
        """Weighted degree of each of `nodes`."""
        ...

    def spread(self, nodes: Nodes, amounts: Float64Vector, out: Float64Vector, /) -> Nodes:
        """Adds A[:, nodes] @ amounts to `out`; returns the nodes that it changed, some more than once."""
        ...


@dataclass(frozen=True, slots=True)
class PushEstimate:
    """`nodes` were reached, each once; `ranks` are their estimates, shape (len(nodes),). All other nodes' are 0.

    The exact rank of any node is its estimate or more, by at most `ratio` times the node's degree.
    """

    nodes: Nodes
    ranks: Float64Vector
    ratio: float


class ForwardPush:
    """The pushes of one reset. `refine` makes the estimate as precise as is asked for, and goes on where it left off."""

    def __init__(self, graph: PushedGraph, starts: Nodes, weights: Float64Vector, damping: float) -> None:
        """`starts` (none twice) and their reset weights, both of shape (k,), none negative and not all zero."""
        self._graph = graph
        self._damping = damping
        nodes = graph.size
        weights = weights / weights.sum()
        # Pages of zeros that nobody writes to cost nothing.
        self._residual: Float64Vector = np.zeros(nodes)
        self._rank: Float64Vector = np.zeros(nodes)
        self._reached: NDArray[np.bool_] = np.zeros(nodes, np.bool_)
        self._nodes = [starts]
        self._residual[starts] = weights
        self._reached[starts] = True
        # Nodes with edges pass all their mass on, the others only get the restart's: `memory.retrieval.ppr`.
        alone = float(weights[graph.degrees_of(starts) == 0].sum())
        self._total = 1.0 - damping * alone
        self.work = 0.0
        """Sum of the degrees of all nodes that were pushed, as often as they were: what the pushes cost."""

    def refine(self, epsilon: float, most_work: float) -> PushEstimate | None:
        """Pushes until no node's residual is above `epsilon` times its degree; None where that takes more than `most_work`."""
        degrees_of, residual, rank, damping = self._graph.degrees_of, self._residual, self._rank, self._damping
        seen = self._all_nodes()
        while True:
            hot = seen[residual[seen] > epsilon * degrees_of(seen)]
            if not len(hot):
                return self._estimate()
            hot = _each_once(hot)
            pushed = residual[hot]
            residual[hot] = 0.0
            rank[hot] += (1.0 - damping) * pushed
            degree = degrees_of(hot)
            linked = degree > 0
            hot, pushed, degree = hot[linked], pushed[linked], degree[linked]
            self.work += float(degree.sum())
            if self.work > most_work:
                return None
            seen = self._graph.spread(hot, damping * pushed / degree, residual)
            new = _each_once(seen[~self._reached[seen]])
            self._reached[new] = True
            self._nodes.append(new)

    def _all_nodes(self) -> Nodes:
        self._nodes = [np.concatenate(self._nodes)]
        return self._nodes[0]

    def _estimate(self) -> PushEstimate:
        nodes = self._all_nodes()
        residual, degrees = self._residual[nodes], self._graph.degrees_of(nodes)
        # A weight that was taken away again leaves a trace of rounding, which may be below zero.
        ranks = np.maximum(self._rank[nodes] + (1.0 - self._damping) * residual, 0.0) / self._total
        ratio = float(np.divide(residual, degrees, out=np.zeros(len(nodes)), where=degrees > 0).max(initial=0.0))
        return PushEstimate(nodes, ranks, self._damping * ratio / self._total)


def _each_once(nodes: Nodes) -> Nodes:
    ordered = np.sort(nodes)
    if len(ordered) < 2:
        return ordered
    once: Nodes = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    return once
