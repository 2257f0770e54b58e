"""Which languages the memory holds, by a sample of its passages."""

from collections import Counter

import numpy as np

from store.snapshot import Snapshot
from store.text.language import detect_language

SAMPLE_PASSAGES = 200
"""Passages that are looked at, evenly over the memory: some 20 ms. A share of 0.2 is known to 0.06 then."""
STALE_SHARE = 0.1
"""By what share the number of passages must change before another sample is taken."""
LEAST_SHARE = 0.02


class PassageLanguages:
    """Shares of languages among living passages. For one thread at a time; an answer may be somewhat old."""

    def __init__(self) -> None:
        self._counted = 0
        self._shares: dict[str, float] = {}

    def shares(self, snapshot: Snapshot) -> dict[str, float]:
        """By ISO 639 code, the commonest first; those of which a sample holds too few to say are left out."""
        living = snapshot.living_passages
        if abs(living - self._counted) > STALE_SHARE * self._counted:
            rows = np.flatnonzero(snapshot.passage_alive)
            sample = (
                rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE_PASSAGES)).astype(int)] if living else rows
            )
            counts = Counter(detect_language(snapshot.passage(row).text) for row in sample.tolist())
            least = LEAST_SHARE * len(sample)
            shares = {code: round(n / len(sample), 2) for code, n in counts.most_common() if code and n >= least}
            self._counted, self._shares = living, shares
        return self._shares
