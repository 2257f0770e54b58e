"""Intervals and p-values of paired differences, compared with scipy's."""

import numpy as np
import pytest
from scipy.stats import bootstrap, permutation_test

from cli.evaluation.comparison import differences


@pytest.mark.parametrize("n", [2, 3, 13, 14, 60])
@pytest.mark.parametrize("seed", range(2))
def test_interval_and_p_equal_those_of_scipy(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 3, n) / 2, rng.integers(0, 3, n) / 2
    values = [{"recall@5": {str(at): float(value) for at, value in enumerate(row)}} for row in (first, second)]
    [found] = differences(["a", "b"], values)
    gains = second - first
    expected = permutation_test(
        (gains,), np.mean, permutation_type="samples", n_resamples=9_999, vectorized=True, rng=1
    )
    assert found.difference == pytest.approx(gains.mean(), abs=1e-4)
    exact = 2**n <= 9_999
    assert found.p == pytest.approx(expected.pvalue, abs=1e-4 if exact else 0.02)
    if gains.std() > 0:
        interval = bootstrap((gains,), np.mean, n_resamples=9_999, method="percentile", rng=1).confidence_interval
        step = 0.5 / n  # between the means that resampling can give
        assert found.low == pytest.approx(interval.low, abs=step + 1e-4)
        assert found.high == pytest.approx(interval.high, abs=step + 1e-4)


def test_equal_rows_do_not_differ() -> None:
    values = [{"recall@5": {"q1": 1.0, "q2": 0.5}}] * 2
    [found] = differences(["a", "b"], values)
    assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)
