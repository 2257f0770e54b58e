"""The titles and the names of documents that stand in a query, and the passages that bear them.

A title names what its passage is about, so a passage whose title the question spells out is where the question begins. Titles
are read by words, without regard to what joins them in a sentence: "Love, Honor and Oh-Baby!" is no run of capitalised words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np

from memory.phrase_normalisation import normalise_phrase
from memory.retrieval.linking.query_entities import MAX_NAMES, MAX_QUERY_CHARS, OPENING_WORDS, UNSPACED
from memory.retrieval.query_context import QueryContext
from store.links.names import own_names

HEADING_SEPARATOR = " › "
"""Between the headings above a passage, the nearest last."""

_LAST_PARENTHESES = re.compile(r"\s*\([^()]*\)\s*$")


@dataclass(frozen=True, slots=True)
class NamedTitle:
    """A title or a document's name as it stands in the query, normalised, and the rows of the passages that bear it, at least
    one. `of_document`: it is a document's, and these are all of its passages."""

    phrase: str
    passages: tuple[int, ...]
    of_document: bool = False


@lru_cache(maxsize=16_384)
def title_phrases(title: str) -> tuple[str, ...]:
    """What a passage with this title is called, normalised: its last heading, with and without what ends it in parentheses."""
    heading = title.rpartition(HEADING_SEPARATOR)[2]
    found = (normalise_phrase(heading), normalise_phrase(_LAST_PARENTHESES.sub("", heading)))
    return tuple(dict.fromkeys(phrase for phrase in found if phrase))


def named_titles(context: QueryContext) -> list[NamedTitle]:
    """The titles in the query, the longest first; none lies within another. At most `MAX_NAMES`.

    A title counts where it has a capitalised word of the query, a number, or a word of a script without capitals; in a query
    in small letters, where it has several words.
    """
    snapshot = context.snapshot
    bearers: dict[str, set[int]] = {}
    # A passage that is named has its title's words.
    for row in context.word_candidates:
        for phrase in title_phrases(snapshot.passage_title(row)):
            bearers.setdefault(phrase, set()).add(row)
    words = _QueryWords(context.query[:MAX_QUERY_CHARS])
    documents = _documents_called(context, words)
    bearers |= documents
    found = [(phrase, start) for phrase in bearers if (start := words.find(phrase, phrase in documents)) is not None]
    taken = np.zeros(len(words.text), np.bool_)
    named: list[NamedTitle] = []
    for phrase, start in sorted(found, key=lambda each: (-len(each[0]), each[1], each[0])):
        part = slice(start, start + len(phrase))
        if not taken[part].any() and len(named) < MAX_NAMES:
            taken[part] = True
            named.append(NamedTitle(phrase, tuple(sorted(bearers[phrase])), phrase in documents))
    return named


def _documents_called(context: QueryContext, words: "_QueryWords") -> dict[str, set[int]]:
    """The names of documents that stand in the query, with the passages of all documents that are called so."""
    snapshot = context.snapshot
    called: dict[str, list[int]] = {}
    for row in context.names.names.tolist():
        for name in own_names(snapshot.names(row)):
            for phrase in title_phrases(name):
                if words.find(phrase, of_document=True) is not None:
                    called.setdefault(phrase, []).append(row)
    found = {}
    for phrase, rows in called.items():
        passages = snapshot.naming.entries(np.array(rows))[1]
        if len(passages := passages[context.taking_part[passages]]):
            found[phrase] = set(passages.tolist())
    return found


def share_of_query(context: QueryContext, titles: Sequence[NamedTitle]) -> float:
    """How much of the query the titles are: the cosine between the query's words, weighted by inverse document frequency, and
    those among them that a title has. 0 without titles, 1 for a query that is nothing else."""
    if not titles:
        return 0.0
    rarities = context.words.rarities
    within = set[tuple[str, ...]]().union(*(context.snapshot.words(title.phrase) for title in titles))
    whole = sum(rarity**2 for rarity in rarities.values())
    return sqrt(sum(rarity**2 for word, rarity in rarities.items() if word in within) / whole) if whole else 0.0


class _QueryWords:
    """A query as normalised words, of which some may begin a name."""

    def __init__(self, query: str) -> None:
        words: list[str] = []
        self._may_name: list[bool] = []
        for piece in query.split():
            first = next((char for char in piece if char.isalnum()), "a")
            for word in normalise_phrase(piece).split():
                words.append(word)
                self._may_name.append(not first.islower() and word not in OPENING_WORDS)
        self.text = f" {' '.join(words)} "
        self._is_small = not any(self._may_name)

    def find(self, phrase: str, of_document: bool = False) -> int | None:
        """Where the phrase stands in the text as a name, or None. A document's name may be the whole text in small letters."""
        if UNSPACED.search(phrase):
            at = self.text.find(phrase)
            return at if at >= 0 and len(phrase) > 1 else None
        at = self.text.find(f" {phrase} ")
        if at < 0:
            return None
        if of_document and phrase == self.text.strip():
            return at + 1
        first = self.text.count(" ", 0, at + 1) - 1
        among: Sequence[bool] = self._may_name[first : first + phrase.count(" ") + 1]
        return at + 1 if any(among) or (self._is_small and len(among) > 1) else None
