"""Descriptions of entities and relations: sentences of passages that tell of them. Pure.

HGMem's graph has a description with every entity and relation, which a model wrote at indexing. hippod's graph has phrases and
triples: what the passages nearest to the subquery say about them is their description.
"""

import re
from collections.abc import Sequence

from memory.answering.working_memory.records.inquiries import FoundPassage
from memory.phrase_normalisation import normalise_phrase

MAX_DESCRIPTION_CHARS = 240

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+(?=[^\W\d_a-z])|(?<=[。！？])|\n+")


class Descriptions:
    """Looks sentences up in some passages, the first of which come first."""

    def __init__(self, passages: Sequence[FoundPassage]) -> None:
        self._sentences = [
            (passage.id, sentence.strip(), f" {normalise_phrase(sentence)} ")
            for passage in passages
            for sentence in _SENTENCE_END.split(passage.text)
            if sentence.strip()
        ]

    def of(self, *phrases: str) -> tuple[str, str]:
        """The first sentence that has all of the normalised `phrases`, and its passage's id; "" and "" where none has."""
        for passage, sentence, words in self._sentences:
            if all(f" {phrase} " in words for phrase in phrases):
                return sentence[:MAX_DESCRIPTION_CHARS], passage
        return "", ""
