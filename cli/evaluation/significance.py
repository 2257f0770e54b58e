"""Whether two modes differ beyond chance: paired over the questions, with a fixed seed so that figures repeat."""

from collections.abc import Mapping, Sequence

from daemon.contract.evaluation import Difference

RESAMPLES = 9_999
SEED = 0
Values = Mapping[str, Sequence[float]]
"""By measure, such as "recall@5": each question's value, the same questions in the same order for every mode."""


def differences(names: Sequence[str], values: Sequence[Values]) -> list[Difference]:
    """Each mode against the first, in every measure that both have over the same questions; two questions at least."""
    found = []
    for name, of_mode in list(zip(names, values, strict=True))[1:]:
        for measure, of_first in values[0].items():
            if measure in of_mode and len(of_mode[measure]) == len(of_first) > 1:
                found.append(_difference(measure, name, of_mode[measure], names[0], of_first))
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
    # One sample: scipy draws the signs of the differences, which is the permutation of each pair.
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
