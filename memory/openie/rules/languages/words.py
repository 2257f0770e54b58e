"""A word with its part of speech, in tags that all the languages share."""

from collections.abc import Iterable
from dataclasses import dataclass

NOUN = "noun"
NAME = "name"
ADJECTIVE = "adjective"
NUMBER = "number"
DETERMINER = "determiner"
PREPOSITION = "preposition"
OF = "of"
"""Joins two nouns to one phrase: "de", "van", the article in the genitive, "的"."""
VERB = "verb"
"""Finite; where a language has no such thing, any verb."""
AUXILIARY = "auxiliary"
"""Finite: forms of "be", "have", "become", and modal verbs."""
NONFINITE = "nonfinite"
"""Participles and infinitives."""
ADVERB = "adverb"
PARTICLE = "particle"
"""Belongs to the verb: negation, a separated prefix, a reflexive pronoun, a mark of aspect."""
PRONOUN = "pronoun"
CONJUNCTION = "conjunction"
SUBORDINATOR = "subordinator"
"""Begins a clause that hangs on another: "weil", "qui", "que", "if"."""
COMMA = "comma"
MARK = "mark"
"""Any other mark: it parts what stands before it from what follows."""


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    tag: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase: its text without determiners, whether a name is in it, and how many of its words say something: none of a
    pronoun's."""

    text: str
    name: bool
    words: int
    number: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    subject: Phrase
    predicate: str
    object: Phrase
    direct: bool
    """The object is the verb's own, no preposition before it."""


def joined(words: Iterable[Word]) -> str:
    """The words of a language without spaces: a space stands between two Latin ones only."""
    text = ""
    for word in words:
        text += " " + word.text if text and text[-1].isascii() and word.text[0].isascii() else word.text
    return text


def names_of(words: Iterable[Word], spaced: bool = True) -> list[str]:
    """Runs of names and numbers within them, in order. `spaced`: the language puts spaces between its words."""
    found: list[str] = []
    run: list[Word] = []
    for word in [*words, Word("", MARK)]:
        if word.tag == NAME or (word.tag == NUMBER and run):
            run.append(word)
            continue
        while run and run[-1].tag == NUMBER and len(run[-1].text) > 3:
            run.pop()  # a year after a name is none of it
        if run:
            found.append((" ".join(each.text for each in run) if spaced else joined(run)).strip("・ "))
        run = []
    return found
