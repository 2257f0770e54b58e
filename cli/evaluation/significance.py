"""Whether two rows differ beyond chance: paired over the questions, with a fixed seed so that figures repeat."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from daemon.contract.evaluation import Difference

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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

    gains = np.asarray(values, dtype=np.float64) - np.asarray(of_baseline, dtype=np.float64)
    drawing = np.random.default_rng(SEED)
    means = [gains[drawing.integers(len(gains), size=len(gains))].mean() for _ in range(RESAMPLES)]
    low, high = np.percentile(means, (2.5, 97.5))
    return Difference(
        measure=measure,
        mode=mode,
        baseline=baseline,
        n=len(gains),
        difference=round(float(gains.mean()), 4),
        low=round(float(low), 4),
        high=round(float(high), 4),
        p=round(_p_value(gains), 4),
    )


def _p_value(gains: "NDArray[np.float64]") -> float:
    """Returns the two-sided p-value of the permutation test of paired values: their differences have random signs.

    All combinations of signs are tested if there are at most as many as `RESAMPLES`.
    """
    import numpy as np

    n = len(gains)
    if all_signs := 2**n <= RESAMPLES:
        heads = np.arange(2**n)[:, None] >> np.arange(n) & 1
    else:
        heads = np.random.default_rng(SEED).integers(2, size=(RESAMPLES, n), dtype=np.int8)
    means, found = (2 * heads - 1) @ gains / n, gains.mean()
    slack = 1e-12 + 1e-12 * abs(found)
    extreme = min(int((means <= found + slack).sum()), int((means >= found - slack).sum()))
    # The observed signs count as one of the random ones, so that p is never 0.
    share = extreme / len(means) if all_signs else (extreme + 1) / (len(means) + 1)
    return min(1.0, 2 * share)
