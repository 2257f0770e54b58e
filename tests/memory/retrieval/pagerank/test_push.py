"""Pushes come as near to PageRank as they say, whatever the graph is and however its nodes are numbered."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.sparse import csr_array

from memory.retrieval.pagerank.chebyshev import pagerank
from memory.retrieval.pagerank.push import ForwardPush
from memory.retrieval.top_k import is_top_k_certain_from_below


@dataclass
class Pushed:
    matrix: csr_array

    @property
    def degrees(self):
        return np.asarray(self.matrix.sum(axis=1)).ravel()

    @property
    def size(self):
        return self.matrix.shape[0]

    def degrees_of(self, nodes, /):
        return self.degrees[nodes]

    def matvec(self, x, /):
        return self.matrix @ x

    def spread(self, nodes, amounts, /):
        part = self.matrix[nodes]
        return part.indices.astype(np.int64), part.data * np.repeat(amounts, np.diff(part.indptr))


def random_graph(seed: int, nodes: int = 300) -> Pushed:
    """Some nodes have many edges, some none."""
    random = np.random.default_rng(seed)
    ends = (nodes * 0.9 * random.random((2, 900)) ** 2).astype(int)
    ends = ends[:, ends[0] != ends[1]]
    one_way = csr_array((random.uniform(0.5, 3.0, ends.shape[1]), tuple(ends)), shape=(nodes, nodes))
    return Pushed(csr_array(one_way + one_way.T))


STARTS = np.array([2, 5, 90, 299])
WEIGHTS = np.array([3.0, 1.0, 0.25, 0.5])


def exact(graph: Pushed, damping: float):
    reset = np.zeros(len(graph.degrees))
    reset[STARTS] = WEIGHTS
    return pagerank(graph, graph.degrees, reset, damping)


@pytest.mark.parametrize("damping", [0.5, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_push_error_stays_within_its_bound(seed: int, damping: float) -> None:
    graph = random_graph(seed)
    ranks, push = exact(graph, damping), ForwardPush(graph, STARTS, WEIGHTS, damping)
    worst = []
    for epsilon in (1e-2, 1e-4, 1e-7):
        found = push.refine(epsilon, np.inf)
        assert found is not None
        estimates = np.zeros(len(ranks))
        estimates[found.nodes] = found.ranks
        assert len(np.unique(found.nodes)) == len(found.nodes)
        short = ranks - estimates
        assert (short >= -1e-9).all()
        assert (short <= found.ratio * graph.degrees + 1e-9).all()
        worst.append(short.max())
    assert worst[0] > worst[1] > worst[2]
    assert worst[2] < 1e-4


def test_push_does_not_depend_on_node_numbering() -> None:
    graph, order = random_graph(7), np.random.default_rng(1).permutation(300)
    other = Pushed(csr_array(graph.matrix[order][:, order]))
    place = np.argsort(order)
    found = ForwardPush(graph, STARTS, WEIGHTS, 0.5).refine(1e-4, np.inf)
    again = ForwardPush(other, place[STARTS], WEIGHTS, 0.5).refine(1e-4, np.inf)
    assert found is not None and again is not None
    ranks, moved = np.zeros(300), np.zeros(300)
    ranks[found.nodes], moved[again.nodes] = found.ranks, again.ranks
    assert moved[place] == pytest.approx(ranks, abs=1e-14)


def test_pushes_that_cost_too_much_are_given_up() -> None:
    push = ForwardPush(random_graph(0), STARTS, WEIGHTS, 0.5)
    assert push.refine(1e-8, 10.0) is None


def test_top_k_is_certain_only_if_no_bound_exceeds_it() -> None:
    scores = np.array([0.5, 0.1, 0.3, 0.2])
    assert is_top_k_certain_from_below(scores, np.full(4, 0.05), 2, 0.0)
    assert not is_top_k_certain_from_below(scores, np.full(4, 0.25), 2, 0.0)
    assert not is_top_k_certain_from_below(scores, np.array([0.0, 0.25, 0.0, 0.0]), 2, 0.0)
    assert not is_top_k_certain_from_below(scores, np.full(4, 0.05), 2, 0.35)
    assert is_top_k_certain_from_below(scores, np.full(4, 0.01), 4, 0.05)
    assert not is_top_k_certain_from_below(np.array([0.5, 0.5]), np.zeros(2), 1, 0.0)
