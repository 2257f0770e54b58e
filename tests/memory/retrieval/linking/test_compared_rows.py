"""The nearest of very many rows, found by groups: those of the exact comparison, whichever rows are dead."""

import numpy as np
import pytest

import memory.retrieval.linking.compared_rows
from memory.retrieval.linking.compared_rows import ComparedRows
from memory.retrieval.score_scaling import MinMax, StandardScore
from store.index.parallel import wait_for_background
from store.index.quantised.groups import MIN_GROUP_ROWS
from store.index.quantised.sample import Moments
from store.index.vectors.matrix import Vectors
from tests.store.oracle import rounded_vectors

pytest.importorskip("turbovec")

DIM, BEHIND, K = 48, 1_000, 5
IN_GROUPS = 11 * MIN_GROUP_ROWS


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(1)
    made = random.standard_normal((IN_GROUPS + BEHIND, DIM), np.float32)
    # Twenty neighbours of each of four queries, two of them equal, one behind the groups.
    for query in range(4):
        places = random.choice(IN_GROUPS, 20, replace=False)
        made[places] = 2.0 * made[-1 - query] + 0.8 * random.standard_normal((20, DIM), np.float32)
        made[places[1]] = made[places[0]]
    return rounded_vectors(made / np.linalg.norm(made, axis=1, keepdims=True))


@pytest.fixture(scope="module")
def view(rows):
    vectors = Vectors(DIM)
    vectors.extend(rows)
    found = vectors.view()
    found.groups()
    wait_for_background()
    return found


@pytest.fixture(autouse=True)
def large(monkeypatch):
    monkeypatch.setattr(memory.retrieval.linking.compared_rows, "GROUPED_MIN_ROWS", 0)


def exact(view, rows, query, alive):
    return ComparedRows(view, query, alive, len(rows), exact=True)


@pytest.mark.parametrize("dead", (0, 3, 2))
def test_nearest_rows_by_groups_equal_those_of_an_exact_search(view, rows, dead) -> None:
    alive = np.ones(len(rows), np.bool_)
    if dead:
        alive[::dead] = False
    for query in rows[-4:]:
        compared = ComparedRows(view, query, alive, len(rows), exact=False)
        found, cosines = compared.nearest(K, str)
        assert "scores" not in vars(compared)  # no row was compared but by the groups
        expected, expected_cosines = exact(view, rows, query, alive).nearest(K, str)
        assert (found, cosines.tolist()) == (expected, expected_cosines.tolist())


def test_groups_are_merged_by_powers_of_two_as_rows_arrive(rows) -> None:
    vectors, alive, earlier = Vectors(DIM), np.ones(len(rows), np.bool_), []
    for count in range(1, 8):
        vectors.extend(rows[vectors.n : count * MIN_GROUP_ROWS + BEHIND])
        view = vectors.view()
        view.groups()
        wait_for_background()
        earlier.append(view)
        # One for each bit of the number, the largest first: 1; 2; 2 and 1; 4; 4 and 1 ...
        sizes = [1 << bit for bit in (2, 1, 0) if count >> bit & 1]
        assert [(group.end - group.first) // MIN_GROUP_ROWS for group in view.groups()] == sizes
    # A view of before looks into groups that have later rows too.
    for view in earlier:
        for query in rows[-4:]:
            compared = ComparedRows(view, query, alive[: view.n], view.n, exact=False)
            found = compared.nearest(K, str)[0]
            assert found == exact(view, rows[: view.n], query, alive[: view.n]).nearest(K, str)[0]


def test_query_without_near_rows_gets_exact_results(view, rows) -> None:
    alive = np.ones(len(rows), np.bool_)
    query = np.random.default_rng(2).standard_normal(DIM).astype(np.float32)
    query /= np.linalg.norm(query)
    found, _ = ComparedRows(view, query, alive, len(rows), exact=False).nearest(1200, str)
    assert found == exact(view, rows, query, alive).nearest(1200, str)[0]


def test_score_scales_match_those_of_all_rows(view, rows) -> None:
    alive = np.arange(len(rows)) % 3 != 0
    query = rows[-1]
    compared, scores = ComparedRows(view, query, alive, len(rows), exact=False), rows @ query
    least_and_most = compared.min_max()
    assert (least_and_most.low, least_and_most.high) == pytest.approx(
        (MinMax.of(scores, alive).low, MinMax.of(scores, alive).high), abs=1e-6
    )
    sampled, whole = compared.standard_score(), StandardScore.of(scores, alive)
    assert sampled.deviation == pytest.approx(whole.deviation, rel=0.02)
    assert sampled.mean == pytest.approx(whole.mean, abs=0.003)


def test_a_sample_and_its_scale_do_not_depend_on_the_order_of_arrival(view, rows) -> None:
    order = np.random.default_rng(3).permutation(len(rows))
    vectors = Vectors(DIM)
    for part in np.array_split(order, 3):
        vectors.extend(rows[part])
        other = vectors.view()
        other.sample(len(rows))
    alive = np.ones(len(rows), np.bool_)
    here, there = (ComparedRows(each, rows[5], alive, len(rows), exact=False) for each in (view, other))
    assert here.standard_score().deviation == pytest.approx(there.standard_score().deviation, rel=1e-9)
    sampled = [each.sample(len(rows)).rows for each in (view, other)]
    assert len(sampled[0]) < 0.3 * len(rows)
    assert sampled[0].tolist() == np.sort(order[sampled[1]]).tolist()


def test_sampled_sums_equal_the_sums_over_sampled_rows(rows) -> None:
    vectors, query, random = Vectors(DIM), rows[5], np.random.default_rng(4)
    views = []
    for end in (70_000, 131_000, 133_000, len(rows)):
        vectors.extend(rows[vectors.n : end])
        views.append(vectors.view())
    for view in [*views, *views[::-1]]:  # those of before again, when later rows are in the moments
        for dead, living in ((0.0, view.n), (0.01, view.n), (0.9, view.n), (0.9, view.n // 10), (1.0, view.n)):
            compared = random.random(view.n) >= dead
            sums = view.sampled_sums(query, compared, living)
            sampled = view.sample(living).rows
            counted = sampled[sampled < view.n]
            counted = counted[compared[counted]]
            coded = view.codes_of(counted)
            products = (coded.codes * coded.units[:, None].astype(np.float64)) @ query
            assert sums.count == len(counted)
            assert sums.products == pytest.approx(products.sum(), rel=1e-9, abs=1e-9)
            assert sums.squares == pytest.approx((products**2).sum(), rel=1e-9, abs=1e-9)


def test_a_query_of_few_living_rows_computes_no_moments(view, rows, monkeypatch) -> None:
    """The sample of all rows stays, because a query of an early commit shares it with those of the last."""
    view.sample(len(rows))
    summed = []
    monkeypatch.setattr(Moments, "with_rows", lambda *given: summed.append(given))
    few = np.arange(len(rows)) % 20 == 0
    sums = view.sampled_sums(rows[5], few, int(few.sum()))
    assert sums.count == few.sum()
    view.sample(len(rows))
    assert summed == []
