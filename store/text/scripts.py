"""Scripts that are written without spaces between words."""

import re

CJK = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese characters, kana and Hangul syllables, as ranges for a regular expression's character set. One such character
carries as much meaning as a word in letters or a part of one."""

UNSPACED = CJK + "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""`CJK` and the letters of Thai, Lao, Burmese and Khmer, which are written without spaces."""

_CJK_CHARACTER = re.compile(f"[{CJK}]")
_UNSPACED_START = re.compile(f"[{UNSPACED}]")


def has_cjk(text: str) -> bool:
    """Whether the text contains a Chinese character, a kana or a Hangul syllable."""
    return not text.isascii() and _CJK_CHARACTER.search(text) is not None


def is_unspaced(word: str) -> bool:
    """Whether a word begins in a script that is written without spaces between words."""
    return not word.isascii() and _UNSPACED_START.match(word) is not None
