"""Detects that encoder or extractor do not know the languages of the memory, and logs it."""

from collections.abc import Collection

import structlog

from daemon.contract.status import IndistinctPhrases, encoder_advice, extractor_advice
from daemon.services.passage_languages import PassageLanguages
from store.snapshot import Snapshot

GROWN = 1.5
"""Growth of the number of phrases after which the memory is checked again."""

MIN_PASSAGES = 100
"""Fewer say little of the languages of a memory that grows."""

log = structlog.get_logger()


def indistinct_phrases(snapshot: Snapshot) -> IndistinctPhrases | None:
    """Counts the living phrases that the encoder cannot tell apart; None if there are none. O(phrases)."""
    unknown = int((snapshot.phrase_alive & ~snapshot.phrase_vectors.known).sum())
    if not unknown and not snapshot.crowded_phrases:
        return None
    return IndistinctPhrases(unknown=unknown, crowded=snapshot.crowded_phrases)


class LanguageWatch:
    """Checks the memory as it grows, and logs at most once each that the encoder is unsuitable, and that the extractor lacks
    taggers. Use from one thread only."""

    def __init__(self, encoder: str, untagged: Collection[str] = ()) -> None:
        """`untagged` are the languages whose taggers the extractor lacks."""
        self._languages = PassageLanguages()
        self._untagged = untagged
        self.use(encoder)

    def use(self, encoder: str) -> None:
        """Checks the memory anew, for another encoder."""
        self._encoder = encoder
        self._next = 0.0
        self._said = False

    def check(self, snapshot: Snapshot) -> None:
        """Checks the memory, if it has grown enough since the last check."""
        if (self._said and not self._untagged) or snapshot.living_phrases < self._next:
            return
        self._next = GROWN * snapshot.living_phrases
        found = indistinct_phrases(snapshot)
        enough = snapshot.living_passages >= MIN_PASSAGES
        languages = self._languages.shares(snapshot) if enough else {}
        if (advice := extractor_advice(self._untagged, languages)) is not None:
            self._untagged = ()
            log.warning("taggers_missing", languages=languages, hint=advice)
        advice = encoder_advice(self._encoder, snapshot.living_phrases, found, languages)
        if advice is not None and not self._said:
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
