"""Detects that the encoder does not know the languages of the memory, and logs it."""

import structlog

from daemon.contract.status import OTHER_ENCODER, IndistinctPhrases
from store.snapshot import Snapshot

GROWN = 1.5
"""Growth of the number of phrases after which the memory is checked again."""

log = structlog.get_logger()


def indistinct_phrases(snapshot: Snapshot) -> IndistinctPhrases | None:
    """Counts the living phrases that the encoder cannot tell apart; None if there are none. O(phrases)."""
    unknown = int((snapshot.phrase_alive & ~snapshot.phrase_vectors.known).sum())
    if not unknown and not snapshot.crowded_phrases:
        return None
    return IndistinctPhrases(unknown=unknown, crowded=snapshot.crowded_phrases)


class LanguageWatch:
    """Checks the memory as it grows, and logs at most once that the encoder is unsuitable. Use from one thread only."""

    def __init__(self, encoder: str) -> None:
        self._encoder = encoder
        self._next = 0.0
        self._said = False

    def check(self, snapshot: Snapshot) -> None:
        """Checks the memory, if it has grown enough since the last check."""
        if self._said or snapshot.living_phrases < self._next:
            return
        self._next = GROWN * snapshot.living_phrases
        found = indistinct_phrases(snapshot)
        if found is not None and found.is_serious(snapshot.living_phrases):
            self._said = True
            log.warning(
                "encoder_knows_little",
                encoder=self._encoder,
                phrases=snapshot.living_phrases,
                unknown=found.unknown,
                crowded=found.crowded,
                hint=OTHER_ENCODER,
            )
