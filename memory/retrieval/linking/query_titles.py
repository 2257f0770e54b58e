"""Finds the passages whose title, or whose document's name, occurs in a query.

A title names the subject of its passage, so a passage is a good start if the query contains its title. Titles are matched by
words, not by capitalisation: "Love, Honor and Oh-Baby!" is not a run of capitalised words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np

from memory.phrase_normalisation import normalise_phrase
from memory.retrieval.linking.query_entities import MAX_NAMES, MAX_NAMING_CHARS, OPENING_WORDS
from memory.retrieval.query_context import QueryContext
from store.links.names import own_names
from store.text.words import has_unspaced

HEADING_SEPARATOR = " › "
"""Separator of the headings in a passage's title; the nearest heading is last."""

_LAST_PARENTHESES = re.compile(r"\s*\([^()]*\)\s*$")


@dataclass(frozen=True, slots=True)
class NamedTitle:
    """A normalised title or document name that occurs in the query, and the rows of its passages, at least one.

    `of_document`: it is a document's name, and `passages` are all passages of the document.
    """

    phrase: str
    passages: tuple[int, ...]
    of_document: bool = False


@lru_cache(maxsize=16_384)
def title_phrases(title: str) -> tuple[str, ...]:
    """Returns the normalised names in a title: its last heading, with and without parentheses at its end."""
    heading = title.rpartition(HEADING_SEPARATOR)[2]
    found = (normalise_phrase(heading), normalise_phrase(_LAST_PARENTHESES.sub("", heading)))
    return tuple(dict.fromkeys(phrase for phrase in found if phrase))


def named_titles(context: QueryContext) -> list[NamedTitle]:
    """Returns at most `MAX_NAMES` titles and document names in the query, longest first, without overlaps.

    A title counts if its words in the query include a capitalised word, a number, or a word in a script without capitals. In a
    query without capitals, a title counts if it has several words.
    """
    snapshot = context.snapshot
    words = _QueryWords(context.query[:MAX_NAMING_CHARS])
    passages_of: dict[str, set[int]] = {}
    # A passage whose title occurs in the query shares words with it, so it is among these candidates.
    for row in context.word_candidates:
        for phrase in title_phrases(snapshot.passage_title(row)):
            if phrase in words.text:
                passages_of.setdefault(phrase, set()).add(row)
    documents = _documents_named(context, words)
    passages_of |= documents
    found = [
        (phrase, start) for phrase in passages_of if (start := words.find(phrase, phrase in documents)) is not None
    ]
    taken = np.zeros(len(words.text), np.bool_)
    named: list[NamedTitle] = []
    for phrase, start in sorted(found, key=lambda each: (-len(each[0]), each[1], each[0])):
        part = slice(start, start + len(phrase))
        if not taken[part].any() and len(named) < MAX_NAMES:
            taken[part] = True
            named.append(NamedTitle(phrase, tuple(sorted(passages_of[phrase])), phrase in documents))
    return named


def _documents_named(context: QueryContext, words: "_QueryWords") -> dict[str, set[int]]:
    """Returns the document names that occur in the query, and for each the passages of all documents with this name."""
    snapshot = context.snapshot
    rows_of: dict[str, list[int]] = {}
    for row in context.names.names.tolist():
        for name in own_names(snapshot.names(row)):
            for phrase in title_phrases(name):
                if words.find(phrase, of_document=True) is not None:
                    rows_of.setdefault(phrase, []).append(row)
    found = {}
    for phrase, rows in rows_of.items():
        passages = snapshot.naming.entries(np.array(rows))[1]
        if len(passages := passages[context.taking_part[passages]]):
            found[phrase] = set(passages.tolist())
    return found


def share_of_query(context: QueryContext, titles: Sequence[NamedTitle]) -> float:
    """Returns the share of the query that the titles make up: 0 without titles, 1 if the query contains only titles.

    The share is the cosine of the query's words, weighted by inverse document frequency, and those of them in the titles.
    """
    if not titles:
        return 0.0
    rarities = context.words.rarities
    within: set[tuple[str, ...]] = set().union(*(context.snapshot.words(title.phrase) for title in titles))
    whole = sum(rarity**2 for rarity in rarities.values())
    return sqrt(sum(rarity**2 for word, rarity in rarities.items() if word in within) / whole) if whole else 0.0


class _QueryWords:
    """A query as normalised words, with a mark of the words that may begin a name."""

    def __init__(self, query: str) -> None:
        words: list[str] = []
        self._may_name: list[bool] = []
        for piece in query.split():
            first = next((char for char in piece if char.isalnum()), "a")
            for word in normalise_phrase(piece).split():
                words.append(word)
                self._may_name.append(not first.islower() and word not in OPENING_WORDS)
        self.text = f" {' '.join(words)} "
        self._is_lower_case = not any(self._may_name)

    def find(self, phrase: str, of_document: bool = False) -> int | None:
        """Returns the position of the phrase in the text if the phrase is a name there; otherwise None.

        A document's name may also be the whole text in lower case.
        """
        if (at := self.text.find(phrase)) < 0:
            return None
        if has_unspaced(phrase):
            return at if len(phrase) > 1 else None
        at = self.text.find(f" {phrase} ")
        if at < 0:
            return None
        if of_document and phrase == self.text.strip():
            return at + 1
        first = self.text.count(" ", 0, at + 1) - 1
        among: Sequence[bool] = self._may_name[first : first + phrase.count(" ") + 1]
        return at + 1 if any(among) or (self._is_lower_case and len(among) > 1) else None
