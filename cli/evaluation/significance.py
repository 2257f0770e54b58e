"""Whether two rows differ beyond chance: paired over the questions, with a fixed seed so that figures repeat."""

from collections.abc import Mapping, Sequence

from daemon.contract.evaluation import Difference

RESAMPLES = 9_999
SEED = 0
Values = Mapping[str, Mapping[str, float]]
"""The value of each question, by measure (such as "recall@5") and question."""


def differences(names: Sequence[str], values: Sequence[Values]) -> list[Difference]:
    """Returns the difference of each row from the first, in every measure that both have, over the questions that both have (at
    least two)."""
    found = []
    for name, of_row in list(zip(names, values, strict=True))[1:]:
        for measure, of_first in values[0].items():
            both = [key for key in of_first if key in of_row.get(measure, {})]
            if len(both) > 1:
                mine, theirs = [of_row[measure][key] for key in both], [of_first[key] for key in both]
                found.append(_difference(measure, name, mine, names[0], theirs))
    return found


def _difference(
    measure: str, mode: str, values: Sequence[float], baseline: str, of_baseline: Sequence[float]
) -> Difference:
    import numpy as np
    from scipy.stats import bootstrap, permutation_test

    gains = np.asarray(values, dtype=np.float64) - np.asarray(of_baseline, dtype=np.float64)
    interval = bootstrap(
        (gains,), np.mean, n_resamples=RESAMPLES, method="percentile", batch=1_000, rng=np.random.default_rng(SEED)
    ).confidence_interval
    # With one sample, scipy draws the signs of the differences: the permutation test of paired values.
    test = permutation_test(
        (gains,),
        np.mean,
        permutation_type="samples",
        n_resamples=RESAMPLES,
        batch=1_000,
        vectorized=True,
        rng=np.random.default_rng(SEED),
    )
    return Difference(
        measure=measure,
        mode=mode,
        baseline=baseline,
        n=len(gains),
        difference=round(float(gains.mean()), 4),
        low=round(float(interval.low), 4),
        high=round(float(interval.high), 4),
        p=round(float(test.pvalue), 4),
    )
