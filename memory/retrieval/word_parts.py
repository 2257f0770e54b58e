"""What a passage has of the parts of the query's words, beside the words themselves.

Stems miss what two words share in the middle: "Bootmenü" and "Boot-Menü", "Antivirenprogramm" and "Antivirus",
"setrecursionlimit" and "recursion". Runs of four characters do not, in any language that is written with letters and without a
dictionary (McNamee and Mayfield, "Character N-Gram Tokenization for European Language Text Retrieval", 2004). An index of them
would be several times as large as that of words, so they are counted in the passages alone that share a word with the query,
the best by BM25, and BM25 of the parts is taken among these.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.bm25 import K1, B
from store.text.query_words import content_words
from store.text.scripts import is_unspaced
from store.text.terms import folded
from store.text.word_split import split_words

PART_LENGTH = 4
"""Characters of a part. A shorter word has none: it would be found within others."""
PARTS_WEIGHT = 0.6
"""What BM25 of the parts counts beside BM25 of the words. A word has several parts, so less than one."""

_END = "\0"


def word_parts(query: str) -> Counter[str]:
    """The parts of a query's words, and how often it has each. A pair of characters of a script without spaces is one.

    Function words have none, as they are not looked for (`store.text.query_words`).
    """
    parts: Counter[str] = Counter()
    for word in split_words(folded(" ".join(content_words(query)))):
        if is_unspaced(word):
            parts[word] += 1
        else:
            parts.update(word[at : at + PART_LENGTH] for at in range(len(word) - PART_LENGTH + 1))
    return parts


def compare_parts(query: str, texts: Sequence[str], lengths: NDArray[np.int32]) -> NDArray[np.float64]:
    """BM25 of `texts`, `lengths` words long, for the parts of the query's words, shape (len(texts),): how rare a part is and
    how long a text comes from these texts alone. They are at least one."""
    parts = word_parts(query)
    if not parts:
        return np.zeros(len(texts))
    counts = _occurrences([folded(text) for text in texts], list(parts))
    norms = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-9))
    holding = (counts > 0).sum(axis=0)
    rarity = np.log1p((len(texts) - holding + 0.5) / (holding + 0.5))
    weights = np.array(list(parts.values()), np.float64) * rarity
    scores: NDArray[np.float64] = (counts * (K1 + 1) / (counts + norms[:, None])) @ weights
    return scores


def _occurrences(texts: Sequence[str], parts: Sequence[str]) -> NDArray[np.float64]:
    """How often each part stands in each text, shape (len(texts), len(parts)), by one pass over all texts for each length."""
    counts = np.zeros((len(texts), len(parts)))
    read = [_units(text + _END) for text in texts]
    ends = np.cumsum([len(units) for units in read])
    units, sought = np.concatenate(read), [_units(part) for part in parts]
    for length in {len(part) for part in sought if len(part) <= PART_LENGTH}:
        columns = np.array([at for at, part in enumerate(sought) if len(part) == length])
        places, which = _places(units, np.stack([sought[at] for at in columns], axis=1))
        np.add.at(counts, (np.searchsorted(ends, places, "right"), columns[which]), 1.0)
    return counts


def _places(units: NDArray[np.uint16], parts: NDArray[np.uint16]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where in `units` one of `parts` stands, shape (length, parts), and which one.

    A checksum of each run of units, in a table of those of the parts, leaves few runs to compare with the parts themselves.
    """
    length = len(parts)
    runs = [units[at : len(units) - length + 1 + at] for at in range(length)]
    may_be = np.zeros(1 << 16, np.bool_)
    may_be[_packed(parts, np.uint16(257))] = True
    places = np.flatnonzero(may_be[_packed(runs, np.uint16(257))])
    keys, exact = _packed(parts, np.uint64(1 << 16)), _packed([run[places] for run in runs], np.uint64(1 << 16))
    order = np.argsort(keys)
    nearest = order[np.minimum(np.searchsorted(keys, exact, sorter=order), len(keys) - 1)]
    found = keys[nearest] == exact
    return places[found], nearest[found]


def _packed(columns: Iterable[NDArray[np.uint16]], base: np.unsignedinteger[Any]) -> NDArray[Any]:
    """Each row of units as one number of the base's type, which wraps around: exact for four units of 16 bits in 64."""
    total: NDArray[Any] = np.zeros(1, type(base))
    for column in columns:
        total = total * base + column.astype(type(base))
    return total


def _units(text: str) -> NDArray[np.uint16]:
    """A text's characters as numbers of 16 bits; a rare one beyond them is two."""
    return np.frombuffer(text.encode("utf-16-le", "surrogatepass"), np.uint16)
