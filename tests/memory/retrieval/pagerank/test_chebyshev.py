"""PageRank is igraph's (prpack), within a bound that is kept, on any undirected weighted graph."""

from dataclasses import dataclass

import igraph
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix, triu

from memory.retrieval.pagerank.chebyshev import MIN_TOLERANCE, pagerank

Vector = NDArray[np.float64]


@dataclass
class Counting:
    matrix: csr_matrix
    products: int = 0

    def matvec(self, x: Vector, /) -> Vector:
        self.products += 1
        product: Vector = self.matrix @ x
        return product


def graph(nodes: int, edges: list[tuple[int, int, float]]) -> csr_matrix:
    """Edges between the same two nodes add up; an edge from a node to itself is left out."""
    kept = [edge for edge in edges if edge[0] != edge[1]]
    sources, targets, weights = zip(*kept, strict=True) if kept else ((), (), ())
    one_way = coo_matrix((np.array(weights, dtype=float), (sources, targets)), shape=(nodes, nodes)).tocsr()
    return (one_way + one_way.T).tocsr()


def degrees(matrix: csr_matrix) -> Vector:
    return np.asarray(matrix.sum(axis=1)).ravel()


def by_igraph(matrix: csr_matrix, reset: Vector, damping: float) -> Vector:
    upper = triu(matrix).tocoo()
    drawn = igraph.Graph(n=matrix.shape[0], edges=np.stack([upper.row, upper.col], axis=1).tolist())
    ranks = drawn.personalized_pagerank(
        directed=False, damping=damping, reset=reset.tolist(), weights=upper.data.tolist(), implementation="prpack"
    )
    return np.array(ranks)


def exact(matrix: csr_matrix, reset: Vector, damping: float) -> Vector:
    """The linear system by elimination, scaled to sum to 1."""
    sums = degrees(matrix)
    columns = matrix.toarray() / np.where(sums > 0, sums, 1.0)
    solution = np.linalg.solve(np.eye(len(reset)) - damping * columns, reset / reset.sum())
    scaled: Vector = solution / solution.sum()
    return scaled


@st.composite
def cases(draw: st.DrawFn) -> tuple[csr_matrix, Vector, float]:
    """Few nodes and edges leave some isolated and make several components; weights and resets span nine powers of ten."""
    nodes = draw(st.integers(1, 25))
    node = st.integers(0, nodes - 1)
    weight = st.one_of(st.just(1.0), st.floats(0.8, 1.0), st.integers(-4, 5).map(lambda power: 10.0**power))
    edges = draw(st.lists(st.tuples(node, node, weight), max_size=60))
    seeds = draw(st.dictionaries(node, st.integers(-4, 5).map(lambda power: 10.0**power), min_size=1))
    reset = np.zeros(nodes)
    reset[list(seeds)] = list(seeds.values())
    return graph(nodes, edges), reset, draw(st.sampled_from([0.1, 0.5, 0.85]))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(cases())
def test_pagerank_equals_igraph_prpack(case: tuple[csr_matrix, Vector, float]) -> None:
    matrix, reset, damping = case
    ranks = pagerank(Counting(matrix), degrees(matrix), reset, damping, 1e-12)
    assert np.abs(ranks - by_igraph(matrix, reset, damping)).max() <= 1e-9


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(cases(), st.sampled_from([1e-2, 1e-5, 1e-9, MIN_TOLERANCE]))
def test_the_error_stays_within_the_tolerance(case: tuple[csr_matrix, Vector, float], tolerance: float) -> None:
    matrix, reset, damping = case
    ranks = pagerank(Counting(matrix), degrees(matrix), reset, damping, tolerance)
    rounding = 1e-13
    assert np.abs(ranks - exact(matrix, reset, damping)).sum() <= tolerance + rounding
    assert ranks.min() >= 0
    assert ranks.sum() == pytest.approx(1.0, abs=tolerance + rounding)


@pytest.mark.parametrize("alone_too", [False, True])
def test_pagerank_of_a_larger_graph_equals_igraph(alone_too: bool) -> None:
    random = np.random.default_rng(5)
    phrases, passages = 2000, 300
    named = phrases - 10
    heavy = (named * random.random(4000) ** 3).astype(int)
    relations = (heavy, random.integers(0, named, 4000), random.integers(1, 4, 4000))
    contexts = (random.integers(0, named, 3000), random.integers(phrases, phrases + passages, 3000), np.ones(3000))
    edges = [(int(a), int(b), float(w)) for kind in (relations, contexts) for a, b, w in zip(*kind, strict=True)]
    matrix = graph(phrases + passages, edges)
    reset = np.zeros(phrases + passages)
    reset[random.choice(phrases, 5, replace=False)] = random.random(5)
    reset[phrases:] = 0.05 * random.random(passages)
    if alone_too:
        reset[named] = 1.0
    ranks = pagerank(Counting(matrix), degrees(matrix), reset)
    truth = by_igraph(matrix, reset, 0.5)
    assert np.abs(ranks - truth).max() <= 1e-9
    assert np.argsort(-ranks)[:100].tolist() == np.argsort(-truth)[:100].tolist()


def test_mass_on_a_node_without_edges_returns_to_the_seeds() -> None:
    matrix = graph(4, [(0, 1, 2.0)])
    reset = np.array([1.0, 0.0, 3.0, 0.0])
    ranks = pagerank(Counting(matrix), degrees(matrix), reset, 0.5, 1e-12)
    np.testing.assert_allclose(ranks, by_igraph(matrix, reset, 0.5), atol=1e-12)
    assert ranks[3] == 0


def test_graph_without_edges_gives_the_normalised_reset() -> None:
    reset = np.array([1.0, 3.0, 0.0])
    np.testing.assert_allclose(pagerank(Counting(graph(3, [])), np.zeros(3), reset), [0.25, 0.75, 0.0], atol=1e-15)


def test_a_component_without_a_seed_gets_nothing() -> None:
    matrix = graph(4, [(0, 1, 1.0), (2, 3, 1.0)])
    ranks = pagerank(Counting(matrix), degrees(matrix), np.array([1.0, 0.0, 0.0, 0.0]))
    assert ranks[2] == ranks[3] == 0


def test_no_damping_gives_the_reset_itself() -> None:
    matrix = graph(3, [(0, 1, 1.0), (1, 2, 1.0)])
    np.testing.assert_allclose(
        pagerank(Counting(matrix), degrees(matrix), np.array([1.0, 2.0, 1.0]), 0.0), [0.25, 0.5, 0.25]
    )


@pytest.mark.parametrize("damping", [5e-324, 1e-310, 1e-200, 1e-17])
def test_tiny_damping_gives_nearly_the_normalised_reset(damping: float) -> None:
    matrix = graph(3, [(0, 1, 1.0), (1, 2, 1.0)])
    found = pagerank(Counting(matrix), degrees(matrix), np.array([1.0, 2.0, 1.0]), damping)
    np.testing.assert_allclose(found, [0.25, 0.5, 0.25])


def test_scaling_the_reset_weights_does_not_change_ranks() -> None:
    matrix = graph(5, [(0, 1, 1.0), (1, 2, 0.9), (2, 3, 4.0)])
    reset = np.array([1.0, 0.0, 2.0, 0.0, 1.0])
    once = pagerank(Counting(matrix), degrees(matrix), reset)
    for factor in (1e-300, 1e300):
        np.testing.assert_allclose(pagerank(Counting(matrix), degrees(matrix), reset * factor), once, rtol=1e-12)


def test_chebyshev_needs_fewer_matrix_products_than_power_iteration() -> None:
    cycle = graph(50, [(i, (i + 1) % 50, 1.0) for i in range(50)])
    reset = np.zeros(50)
    reset[0] = 1.0
    counting = Counting(cycle)
    pagerank(counting, degrees(cycle), reset, 0.5, 1e-10)
    plain = int(np.ceil(np.log(1e-10) / np.log(0.5)))
    assert counting.products <= 0.7 * plain


@pytest.mark.parametrize(
    ("reset", "damping", "tolerance", "said"),
    [
        (np.zeros(2), 0.5, 1e-10, "zero"),
        (np.zeros(0), 0.5, 1e-10, "shape"),
        (np.array([1.0, -0.1]), 0.5, 1e-10, "negative"),
        (np.array([1.0, np.nan]), 0.5, 1e-10, "not a number"),
        (np.array([1.0, np.inf]), 0.5, 1e-10, "not a number"),
        (np.ones(3), 0.5, 1e-10, "shape"),
        (np.ones(2), 1.0, 1e-10, "Damping"),
        (np.ones(2), -0.1, 1e-10, "Damping"),
        (np.ones(2), 0.5, 0.0, "Tolerance"),
        (np.ones(2), 0.5, float("nan"), "Tolerance"),
    ],
)
def test_invalid_pagerank_arguments_are_refused(reset: Vector, damping: float, tolerance: float, said: str) -> None:
    matrix = graph(2, [(0, 1, 1.0)])
    with pytest.raises(ValueError, match=said):
        pagerank(Counting(matrix), degrees(matrix), reset, damping, tolerance)


def test_degrees_that_are_not_the_row_sums_end_in_an_error_not_in_a_loop() -> None:
    matrix = graph(3, [(0, 1, 1.0), (1, 2, 1.0)])
    with pytest.raises(ArithmeticError, match="row sums"):
        pagerank(Counting(matrix), degrees(matrix) / 10, np.ones(3))
