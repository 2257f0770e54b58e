"""Splits a text in any script into words."""

import re
from collections.abc import Iterator
from unicodedata import normalize

from store.text.scripts import UNSPACED, is_unspaced

LONGEST_TERM = 64
"""Longer runs of letters are truncated. They are base64 or noise and must not become terms of a kilobyte each."""

_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD = re.compile(f"[{UNSPACED}]+|[^\\W_{UNSPACED}]+")


def split_words(text: str) -> Iterator[str]:
    """Yields case-folded, NFKC-normalised words and numbers in order; in scripts without spaces, overlapping pairs of
    characters.

    NFKC replaces full-width letters, ligatures and similar characters by plain ones. A single character is yielded by
    itself.
    """
    folded = normalize("NFKC", normalize("NFKC", text).casefold())
    if not _UNSPACED.search(folded):
        yield from (word[:LONGEST_TERM] for word in _WORD.findall(folded))
        return
    for word in _WORD.findall(folded):
        if is_unspaced(word):
            yield from (word[i : i + 2] for i in range(max(len(word) - 1, 1)))
        else:
            yield word[:LONGEST_TERM]
