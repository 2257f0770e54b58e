"""Splits a text in any script into words."""

import re
from collections.abc import Iterator
from unicodedata import normalize

CJK = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese characters, kana and Hangul syllables, as ranges for a character set of a regular expression. One such character has
as much meaning as a whole word or a part of a word in an alphabetic script."""

UNSPACED = CJK + "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""`CJK`, and the letters of Thai, Lao, Burmese and Khmer, which are written without spaces between words."""

_CJK_CHARACTER = re.compile(f"[{CJK}]")
_UNSPACED = re.compile(f"[{UNSPACED}]")

LONGEST_TERM = 64
"""Maximum length of a term; longer runs of letters, which are base64 or noise, are truncated."""

_WORD = re.compile(f"[{UNSPACED}]+|[^\\W_{UNSPACED}]+")


def has_cjk(text: str) -> bool:
    """Whether the text contains a Chinese character, a kana or a Hangul syllable."""
    return not text.isascii() and _CJK_CHARACTER.search(text) is not None


def has_unspaced(text: str) -> bool:
    """Whether the text contains a character of a script written without spaces between words, or a Korean character, because
    Korean particles follow words without spaces."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def is_unspaced(word: str) -> bool:
    """Whether a word begins with a character of a script written without spaces between words."""
    return not word.isascii() and _UNSPACED.match(word) is not None


def split_words(text: str) -> Iterator[str]:
    """Yields words and numbers in order, case-folded and NFKC-normalised; overlapping character pairs in scripts without
    spaces.

    NFKC replaces full-width letters, ligatures and similar characters by ordinary ones. In scripts without spaces, a word of
    one character is yielded as it is.
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
