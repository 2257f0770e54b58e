"""Estimates the shares of languages in the memory from a sample of passages."""

from collections import Counter

import numpy as np

from store.snapshot import Snapshot
from store.text.language import detect_language

SAMPLE_PASSAGES = 200
"""Passages in a sample, spread evenly over the memory. Takes about 20 ms. The error of a share of 0.2 is about 0.06."""
STALE_SHARE = 0.1
"""Relative change of the number of passages after which a new sample is taken."""
MIN_SHARE = 0.02


class PassageLanguages:
    """Shares of languages among living passages, possibly somewhat outdated. Use from one thread at a time."""

    def __init__(self) -> None:
        self._counted = 0
        self._shares: dict[str, float] = {}

    def shares(self, snapshot: Snapshot) -> dict[str, float]:
        """Returns shares by ISO 639 code, largest first. Leaves out languages below `MIN_SHARE` of the sample."""
        living = snapshot.living_passages
        if abs(living - self._counted) > STALE_SHARE * self._counted:
            rows = np.flatnonzero(snapshot.passage_alive)
            sample = (
                rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE_PASSAGES)).astype(int)] if living else rows
            )
            counts = Counter(detect_language(snapshot.passage(row).text) for row in sample.tolist())
            least = MIN_SHARE * len(sample)
            shares = {code: round(n / len(sample), 2) for code, n in counts.most_common() if code and n >= least}
            self._counted, self._shares = living, shares
        return self._shares
