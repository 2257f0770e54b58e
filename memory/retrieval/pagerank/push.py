"""Personalized PageRank from few starts, by forward push: it costs what it touches, not what the graph has.

Andersen, Chung and Lang, "Local Graph Partitioning using PageRank Vectors" (2006), section 3. With M = (1 - d)(I - d P)⁻¹ (the
names of `ppr`) the PageRank is M r. Two vectors are kept, estimate p and residual r', and M r = p + M r' at
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

from memory.retrieval.pagerank.reached_nodes import Nodes, ReachedNodes, each_once

Float64Vector = NDArray[np.float64]


class PushedGraph(Protocol):
    """A symmetric matrix of edge weights that tells the edges of some nodes."""

    @property
    def size(self) -> int:
        """How many nodes there are."""
        ...

    def degrees_of(self, nodes: Nodes, /) -> Float64Vector:
        """Weighted degree of each of `nodes`."""
        ...

    def spread(self, nodes: Nodes, amounts: Float64Vector, /) -> tuple[Nodes, Float64Vector]:
        """A[:, nodes] @ amounts: nodes, some of them more than once, and what each gets."""
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
        self._reached = ReachedNodes(graph.size)
        # Of each node that was reached.
        self._residual: Float64Vector = np.empty(0)
        self._rank: Float64Vector = np.empty(0)
        self._degree: Float64Vector = np.empty(0)
        weights = weights / weights.sum()
        numbers = self._reach(starts)
        self._residual[numbers] = weights
        # Nodes with edges pass all their mass on, the others only get the restart's: `memory.retrieval.pagerank.ppr`.
        alone = float(weights[self._degree[numbers] == 0].sum())
        self._total = 1.0 - damping * alone
        self.work = 0.0
        """Sum of the degrees of all nodes that were pushed, as often as they were: what the pushes cost."""

    def __enter__(self) -> "ForwardPush":
        return self

    def __exit__(self, *_: object) -> None:
        self._reached.close()

    def refine(self, epsilon: float, most_work: float) -> PushEstimate | None:
        """Pushes until no node's residual is above `epsilon` times its degree; None where that takes more than `most_work`."""
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
            if self.work > most_work:
                return None
            nodes, amounts = self._graph.spread(self._reached.nodes[hot], self._damping * pushed / degree)
            seen = self._reach(nodes)
            np.add.at(self._residual, seen, amounts)

    def _reach(self, nodes: Nodes) -> Nodes:
        """The numbers of nodes, some of which may have been reached before."""
        before = len(self._residual)
        numbers = self._reached.numbers_of(nodes)
        new = self._reached.nodes[before:]
        self._residual = np.concatenate([self._residual, np.zeros(len(new))])
        self._rank = np.concatenate([self._rank, np.zeros(len(new))])
        self._degree = np.concatenate([self._degree, self._graph.degrees_of(new)])
        return numbers

    def _estimate(self) -> PushEstimate:
        # A weight that was taken away again leaves a trace of rounding, which may be below zero.
        ranks = np.maximum(self._rank + (1.0 - self._damping) * self._residual, 0.0) / self._total
        ratios = np.divide(self._residual, self._degree, out=np.zeros(len(ranks)), where=self._degree > 0)
        ratio = float(ratios.max(initial=0.0))
        return PushEstimate(self._reached.nodes, ranks, self._damping * ratio / self._total)
