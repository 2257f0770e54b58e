"""A word with its tag, and the names in a sequence of words."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

NAME = "name"
NOUN = "noun"
NUMBER = "number"
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    tag: str


def joined(words: Iterable[Word]) -> str:
    """Joins words of a language without spaces; a space separates Latin words only."""
    text = ""
    for word in words:
        text += " " + word.text if text and text[-1].isascii() and word.text[0].isascii() else word.text
    return text


def split_at_names(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """Yields the pieces of the text, and whether each piece is a name, that is, matches the pattern."""
    at = 0
    for name in pattern.finditer(text):
        yield text[at : name.start()], False
        yield name.group(), True
        at = name.end()
    yield text[at:], False


def names_of(words: Sequence[Word]) -> list[list[Word]]:
    """Returns the runs of names, including numbers inside them, in order."""
    found: list[list[Word]] = []
    run: list[Word] = []
    for word in [*words, Word("", OTHER)]:
        if word.tag == NAME or (word.tag == NUMBER and run):
            run.append(word)
            continue
        while run and run[-1].tag == NUMBER and len(run[-1].text) > 3:
            run.pop()  # a year after a name is not a part of the name
        if run:
            found.append(run)
        run = []
    return found


def compounds_of(words: Sequence[Word]) -> list[list[Word]]:
    """Returns the runs of at least two nouns, in order."""
    found: list[list[Word]] = []
    run: list[Word] = []
    for word in [*words, Word("", OTHER)]:
        if word.tag == NOUN:
            run.append(word)
            continue
        if len(run) > 1:
            found.append(run)
        run = []
    return found
