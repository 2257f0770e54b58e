"""The words of a text, one after the other, in any script."""

import re
from collections.abc import Iterator
from unicodedata import normalize

from store.text.scripts import UNSPACED, is_unspaced

LONGEST_TERM = 64
"""Longer runs of letters are cut: they are base64 or noise, and must not become a million terms of a kilobyte each."""

_WORD = re.compile(f"[{UNSPACED}]+|[^\\W_{UNSPACED}]+")


def split_words(text: str) -> Iterator[str]:
    """Case-folded words and numbers in order, accents composed; pairs of characters where a script has no spaces.

    Full-width letters, ligatures and the like are their plain ones (NFKC). A lone character is a pair by itself.
    """
    for word in _WORD.findall(normalize("NFKC", normalize("NFKC", text).casefold())):
        if is_unspaced(word):
            yield from (word[i : i + 2] for i in range(max(len(word) - 1, 1)))
        else:
            yield word[:LONGEST_TERM]
