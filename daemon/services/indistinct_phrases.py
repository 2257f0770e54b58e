"""Whether the encoder knows the languages of what it is given: hippod says so where it does not."""

import structlog

from daemon.contract.status import OTHER_ENCODER, IndistinctPhrases
from store.snapshot import Snapshot

GROWN = 1.5
"""How much more phrases than at the last look make another worth while."""

log = structlog.get_logger()


def indistinct_phrases(snapshot: Snapshot) -> IndistinctPhrases | None:
    """The living phrases that the encoder cannot tell apart, None where there are none. O(phrases)."""
    unknown = int((snapshot.phrase_alive & ~snapshot.phrase_vectors.known).sum())
    if not unknown and not snapshot.crowded_phrases:
        return None
    return IndistinctPhrases(unknown=unknown, crowded=snapshot.crowded_phrases)


class LanguageWatch:
    """Looks as the memory grows, and logs once in its life that the encoder is the wrong one. For one thread."""

    def __init__(self, encoder: str) -> None:
        self._encoder = encoder
        self._next = 0.0
        self._said = False

    def check(self, snapshot: Snapshot) -> None:
        """Cheap where the memory has not grown much since the last look."""
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
