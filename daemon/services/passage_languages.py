"""Estimates the memory's languages from a sample of passages, and logs if the encoder does not know them."""

import threading
from collections import Counter
from collections.abc import Collection

import numpy as np
import structlog

from daemon.contract.advice import encoder_advice, extractor_advice
from daemon.contract.status import IndistinctPhrases
from store.snapshot import Snapshot
from store.text.language import detect_language

SAMPLE_PASSAGES = 200
"""Passages in a sample, spread over the memory. Sampling takes about 20 ms; a share of 0.2 is then accurate to about 0.06."""
STALE_SHARE = 0.1
"""Relative change of the number of passages after which a new sample is taken."""
MIN_SHARE = 0.02
GROWN = 1.5
"""Growth factor of the number of phrases after which the memory is checked again."""
MIN_PASSAGES = 100
"""Minimum passages for an estimate of the memory's languages."""

log = structlog.get_logger()


class PassageLanguages:
    """Shares of languages among living passages; may be slightly outdated. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted = 0
        self._shares: dict[str, float] = {}

    def shares(self, snapshot: Snapshot) -> dict[str, float]:
        """Returns shares by ISO 639 code, largest first. Leaves out languages below `MIN_SHARE` of the sample."""
        living = snapshot.living_passages
        with self._lock:
            if abs(living - self._counted) > STALE_SHARE * self._counted:
                self._counted, self._shares = living, _sampled_shares(snapshot)
            return self._shares


def _sampled_shares(snapshot: Snapshot) -> dict[str, float]:
    rows = np.flatnonzero(snapshot.passage_alive)
    sample = rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE_PASSAGES)).astype(int)] if len(rows) else rows
    counts = Counter(detect_language(snapshot.passage(row).text) for row in sample.tolist())
    minimum = MIN_SHARE * len(sample)
    return {code: round(n / len(sample), 2) for code, n in counts.most_common() if code and n >= minimum}


def indistinct_phrases(snapshot: Snapshot) -> IndistinctPhrases | None:
    """Counts the living phrases that the encoder cannot distinguish; None if there are none. O(phrases)."""
    unknown = int((snapshot.phrase_alive & ~snapshot.phrase_vectors.known).sum())
    if not unknown and not snapshot.crowded_phrases:
        return None
    return IndistinctPhrases(unknown=unknown, crowded=snapshot.crowded_phrases)


class LanguageWatch:
    """Checks the memory as it grows. Logs at most once that the encoder is unsuitable, and at most once that the extractor
    lacks taggers. Use from one thread only."""

    def __init__(self, encoder: str, untagged: Collection[str] = ()) -> None:
        """`untagged` are the languages for which the extractor lacks taggers."""
        self._languages = PassageLanguages()
        self._untagged = untagged
        self.use(encoder)

    def use(self, encoder: str) -> None:
        """Checks the memory again, because `encoder` replaces the former encoder."""
        self._encoder = encoder
        self._next = 0.0
        self._advised = False

    def check(self, snapshot: Snapshot) -> None:
        """Checks the memory, if it has grown enough since the last check."""
        if (self._advised and not self._untagged) or snapshot.living_phrases < self._next:
            return
        self._next = GROWN * snapshot.living_phrases
        found = indistinct_phrases(snapshot)
        enough = snapshot.living_passages >= MIN_PASSAGES
        languages = self._languages.shares(snapshot) if enough else {}
        if (advice := extractor_advice(self._untagged, languages)) is not None:
            self._untagged = ()
            log.warning("taggers_missing", languages=languages, hint=advice)
        advice = encoder_advice(self._encoder, snapshot.living_phrases, found, languages)
        if advice is not None and not self._advised:
            self._advised = True
            log.warning(
                "encoder_knows_little",
                encoder=self._encoder,
                phrases=snapshot.living_phrases,
                unknown=0 if found is None else found.unknown,
                crowded=0 if found is None else found.crowded,
                languages=languages,
                hint=advice,
            )
