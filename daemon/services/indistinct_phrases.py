"""Whether the encoder knows the languages of what it is given: hippod says so where it does not."""

import structlog

from daemon.contract.status import IndistinctPhrases, encoder_advice
from daemon.services.passage_languages import PassageLanguages
from store.snapshot import Snapshot

GROWN = 1.5
"""How much more phrases than at the last look make another worth while."""

LEAST_PASSAGES = 100
"""Fewer say little of the languages of a memory that grows."""

log = structlog.get_logger()


def indistinct_phrases(snapshot: Snapshot) -> IndistinctPhrases | None:
    """The living phrases that the encoder cannot tell apart, None where there are none. O(phrases)."""
    unknown = int((snapshot.phrase_alive & ~snapshot.phrase_vectors.known).sum())
    if not unknown and not snapshot.crowded_phrases:
        return None
    return IndistinctPhrases(unknown=unknown, crowded=snapshot.crowded_phrases)


class LanguageWatch:
    """Looks as the memory grows, and logs once in its life that the documents need another encoder. For one thread."""

    def __init__(self, encoder: str) -> None:
        self._encoder = encoder
        self._languages = PassageLanguages()
        self._next = 0.0
        self._said = False

    def check(self, snapshot: Snapshot) -> None:
        """Cheap where the memory has not grown much since the last look."""
        if self._said or snapshot.living_phrases < self._next:
            return
        self._next = GROWN * snapshot.living_phrases
        found = indistinct_phrases(snapshot)
        enough = snapshot.living_passages >= LEAST_PASSAGES
        languages = self._languages.shares(snapshot) if enough else {}
        advice = encoder_advice(self._encoder, snapshot.living_phrases, found, languages)
        if advice is not None:
            self._said = True
            log.warning(
                "encoder_knows_little",
                encoder=self._encoder,
                phrases=snapshot.living_phrases,
                unknown=0 if found is None else found.unknown,
                crowded=0 if found is None else found.crowded,
                languages=languages,
                hint=advice,
            )
