"""Finds names in German, where every noun has a capital. The Hanover Tagger analyses morphemes and selects the most probable
tags (Wartena 2019)."""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from memory.openie.rules.languages.words import NAME, NUMBER, OTHER, Word

_NAME_TAGS = frozenset({"NE", "FM"})
LONGEST_WORD = 50
"""Maximum number of letters of a word that is analysed; a longer word is tagged as a noun."""
MODEL = "morphmodel_ger.pgz"


@cache
def _tagger() -> Any:
    from HanTa.HanoverTagger import HanoverTagger

    tagger = HanoverTagger(MODEL)
    # Morphemes take most of the time and do not depend on the sentence.
    tagger.analyze_forward = lru_cache(1 << 14)(tagger.analyze_forward)
    return tagger


def tag_german(sentence: Sequence[str]) -> list[Word]:
    """Returns the words with tags that distinguish names from common nouns."""
    tagger = _tagger()
    # The time is quadratic in a word's length, and German has no words this long.
    numbers = tagger.tag_sent_viterbi([text if len(text) <= LONGEST_WORD else "Wort" for text in sentence])
    found: list[Word] = []
    for text, number in zip(sentence, numbers, strict=True):
        tag = _tag(text, tagger.int2tag[number])
        if tag == OTHER and text[0].isupper() and len(text) > 1 and found and found[-1].tag == NAME:
            tag = NAME  # "Emil Strand": a noun directly after a name is a part of it
        found.append(Word(text, tag))
    return found


def _tag(text: str, tag: str) -> str:
    if text[0].isdigit():
        return NUMBER
    # Lower-case code and foreign words ("of") alone are not names.
    return NAME if tag in _NAME_TAGS and text[0].isalpha() and not text.islower() and len(text) > 1 else OTHER
