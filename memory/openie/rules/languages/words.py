"""A word with what matters for names, and the names in a run of words."""

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
    """The words of a language without spaces: a space stands between two Latin ones only."""
    text = ""
    for word in words:
        text += " " + word.text if text and text[-1].isascii() and word.text[0].isascii() else word.text
    return text


def split_at_names(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """The text in pieces, and whether a piece is a name: what the pattern finds."""
    at = 0
    for name in pattern.finditer(text):
        yield text[at : name.start()], False
        yield name.group(), True
        at = name.end()
    yield text[at:], False


def names_of(words: Sequence[Word]) -> list[list[Word]]:
    """Runs of names and numbers within them, in order."""
    found: list[list[Word]] = []
    run: list[Word] = []
    for word in [*words, Word("", OTHER)]:
        if word.tag == NAME or (word.tag == NUMBER and run):
            run.append(word)
            continue
        while run and run[-1].tag == NUMBER and len(run[-1].text) > 3:
            run.pop()  # a year after a name is none of it
        if run:
            found.append(run)
        run = []
    return found


def compounds_of(words: Sequence[Word]) -> list[list[Word]]:
    """Runs of at least two nouns, in order."""
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
