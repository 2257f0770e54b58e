"""Intervals and p-values of paired differences."""

from itertools import product

import numpy as np
import pytest

from cli.evaluation.comparison import differences
from daemon.contract.evaluation import Difference


def _compared(first: np.ndarray, second: np.ndarray) -> Difference:
    values = [{"recall@5": {str(at): float(value) for at, value in enumerate(row)}} for row in (first, second)]
    [found] = differences(["a", "b"], values)
    return found


@pytest.mark.parametrize("n", [2, 3, 8, 13])
@pytest.mark.parametrize("seed", range(2))
def test_p_is_share_of_all_signs_with_as_large_a_difference(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 3, n) / 2, rng.integers(0, 3, n) / 2
    gains = second - first
    means = np.array(list(product((-1, 1), repeat=n))) @ gains / n
    share = min((means <= gains.mean() + 1e-9).mean(), (means >= gains.mean() - 1e-9).mean())
    found = _compared(first, second)
    assert found.difference == pytest.approx(gains.mean(), abs=1e-4)
    assert found.p == pytest.approx(min(1.0, 2 * share), abs=1e-4)


@pytest.mark.parametrize("seed", range(2))
def test_interval_and_p_of_many_questions_are_those_of_normal_distribution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first = rng.random(1_000)
    second = first + rng.normal(0.01, 0.2, 1_000)
    found = _compared(first, second)
    error = (second - first).std() / 1_000**0.5
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.05)
    assert (found.p < 0.05) == (abs(found.difference) > 1.96 * error)


def test_interval_and_p_are_repeatable() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random(60), rng.random(60)
    assert _compared(first, second) == _compared(first, second)


def test_equal_rows_do_not_differ() -> None:
    found = _compared(np.array([1.0, 0.5]), np.array([1.0, 0.5]))
    assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)
