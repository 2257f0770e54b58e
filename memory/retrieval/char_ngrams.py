"""Scores passages by parts of the query's words, in addition to whole words.

Stems do not match words that share a part, such as "Bootmenü" and "Boot-Menü", "Antivirenprogramm" and "Antivirus",
"setrecursionlimit" and "recursion". Runs of four characters match them without a dictionary, in any language that is written
with letters (McNamee and Mayfield, "Character N-Gram Tokenization for European Language Text Retrieval", 2004). An index of
these runs would be several times as large as the index of words. So they are counted only in the best passages by BM25, and
their own BM25 is computed among these passages.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.words.bm25 import K1, B
from store.text.query_words import content_words
from store.text.terms import folded
from store.text.words import is_unspaced, split_words

PART_LENGTH = 4
"""Length of a part in characters. A shorter word has no parts, because it would match inside other words."""
PARTS_WEIGHT = 0.6
"""Weight of the parts' BM25, relative to the words' BM25. It is less than 1, because a word has several parts."""
CACHED_TEXTS = 4_096
"""Number of texts whose units are cached: 5 MB for passages of 100 words, 15 MB for the longest ones."""

_END = "\0"


def char_ngrams(query: str) -> Counter[str]:
    """Returns the parts of a query's words, with their counts. In scripts without spaces, each pair of characters is a part.

    Function words have no parts, because they are not searched for (`store.text.query_words`).
    """
    parts: Counter[str] = Counter()
    for word in split_words(folded(" ".join(content_words(query)))):
        if is_unspaced(word):
            parts[word] += 1
        else:
            parts.update(word[at : at + PART_LENGTH] for at in range(len(word) - PART_LENGTH + 1))
    return parts


def compare_parts(
    query: str, ids: Sequence[str], text: Callable[[int], str], lengths: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Returns BM25 of texts for the parts of the query's words, shape (len(ids),). There must be at least one text.

    `ids` identify the texts by their content; `text` returns the text with an index in `ids`. `lengths` are the texts' numbers
    of words. The rarity of parts and the mean length are computed from these texts."""
    parts = char_ngrams(query)
    if not parts:
        return np.zeros(len(ids))
    counts = _occurrences([_text_units(id, place, text) for place, id in enumerate(ids)], list(parts))
    norms = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-9))
    texts_with_part = (counts > 0).sum(axis=0)
    rarity = np.log1p((len(ids) - texts_with_part + 0.5) / (texts_with_part + 0.5))
    weights = np.array(list(parts.values()), np.float64) * rarity
    scores: NDArray[np.float64] = (counts * (K1 + 1) / (counts + norms[:, None])) @ weights
    return scores


def _occurrences(texts: Sequence[NDArray[np.uint16]], parts: Sequence[str]) -> NDArray[np.float64]:
    """Returns how often each part occurs in each text, shape (len(texts), len(parts)), in one pass per length of parts."""
    counts = np.zeros(len(texts) * len(parts))
    ends = np.cumsum([len(units) for units in texts])
    units, part_units = np.concatenate(texts), [_units(part) for part in parts]
    for length in {len(part) for part in part_units if len(part) <= PART_LENGTH}:
        columns = np.array([at for at, part in enumerate(part_units) if len(part) == length])
        places, which = _places(units, np.stack([part_units[at] for at in columns], axis=1))
        np.add.at(counts, np.searchsorted(ends, places, "right") * len(parts) + columns[which], 1.0)
    return counts.reshape(len(texts), len(parts))


def _places(units: NDArray[np.uint16], parts: NDArray[np.uint16]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Finds `parts`, shape (length, parts), in `units`; returns the positions, and the index of the part at each position.

    A table of the parts' checksums excludes most positions before the parts themselves are compared.
    """
    length = len(parts)
    runs = [units[at : len(units) - length + 1 + at] for at in range(length)]
    may_be = np.zeros(1 << 16, np.bool_)
    may_be[_packed(parts, np.uint16(257))] = True
    places = np.flatnonzero(may_be.take(_packed(runs, np.uint16(257)), mode="clip"))  # `clip` is the fastest mode
    keys, exact = _packed(parts, np.uint64(1 << 16)), _packed([run[places] for run in runs], np.uint64(1 << 16))
    order = np.argsort(keys)
    nearest = order[np.minimum(np.searchsorted(keys, exact, sorter=order), len(keys) - 1)]
    found = keys[nearest] == exact
    return places[found], nearest[found]


def _packed(columns: Iterable[NDArray[np.uint16]], base: np.unsignedinteger[Any]) -> NDArray[Any]:
    """Packs each row of units into one number of the base's type, which wraps around; four 16-bit units fit into 64 bits."""
    first, *others = columns
    total: NDArray[Any] = first.astype(type(base))
    for column in others:
        total *= base
        total += column
    return total


_units_of: dict[str, NDArray[np.uint16]] = {}
"""The last texts' units, by id."""


def _text_units(id: str, place: int, text: Callable[[int], str]) -> NDArray[np.uint16]:
    """Returns the units of a folded text, followed by a unit that no part contains."""
    units = _units_of.get(id)
    if units is None:
        if len(_units_of) >= CACHED_TEXTS:
            _units_of.clear()
        units = _units_of[id] = _units(folded(text(place)) + _END)
    return units


def _units(text: str) -> NDArray[np.uint16]:
    """Returns the text's UTF-16 units; rare characters have two."""
    return np.frombuffer(text.encode("utf-16-le", "surrogatepass"), np.uint16)
