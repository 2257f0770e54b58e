"""Descriptions of entities and relations, taken from sentences of passages. Pure functions.

In HGMem's graph, a model wrote a description for every entity and relation during indexing. hippod's graph has phrases and
triples; sentences about them in the passages nearest to the subquery are their descriptions.
"""

import re
from collections.abc import Sequence

from memory.answering.working_memory.records.inquiries import FoundPassage
from memory.phrase_normalisation import normalise_phrase

MAX_SENTENCE_CHARS = 240

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+(?=[^\W\d_a-z])|(?<=[。！？])|\n+")


class Descriptions:
    """Finds sentences in passages; earlier passages take precedence."""

    def __init__(self, passages: Sequence[FoundPassage]) -> None:
        self._sentences = [
            (passage.id, sentence.strip(), f" {normalise_phrase(sentence)} ")
            for passage in passages
            for sentence in _SENTENCE_END.split(passage.text)
            if sentence.strip()
        ]

    def of(self, *phrases: str) -> tuple[str, str]:
        """Returns the first sentence with all of the normalised `phrases`, and its passage's id; "" and "" if there is none."""
        for passage, sentence, words in self._sentences:
            if all(f" {phrase} " in words for phrase in phrases):
                return sentence[:MAX_SENTENCE_CHARS], passage
        return "", ""
