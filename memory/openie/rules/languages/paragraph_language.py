"""Which language a paragraph is in: another than its passage's, where that quotes English or another script."""

import re
from collections.abc import Sequence

from memory.openie.rules.grammar.pos_tagger import tagger
from memory.openie.rules.grammar.tokenizer import word_set
from store.text.language import detect_language

_KANA = re.compile("[\u3041-\u30fa]")
_WIDE = re.compile("[\u3041-\u30fa\u3400-\u9fff]")
_LATIN = re.compile("[A-Za-z]")
_LATIN_PER_WIDE = 4
"""Latin letters that say about as much as one Chinese character."""
_ENGLISH = word_set(
    "the of and to for with by that from at are were has had have his her its it which an be this not as on he she they who "
    "when their been also but or into after before would can will you we"
)


def paragraph_language(text: str, language: str) -> str:
    """The language of a paragraph in a passage that is in `language`: that one, or English, or what its script says.

    The detector takes a Chinese sentence with two English names for English.
    """
    if len(_WIDE.findall(text)) * _LATIN_PER_WIDE > len(_LATIN.findall(text)):
        return "ja" if _KANA.search(text) else "zh"
    return "en" if language and detect_language(text) == "en" else language


def is_english(words: Sequence[str]) -> bool:
    """Whether a stretch of words is English prose.

    One in ten or more belongs to its grammar, or three in four of those in lower case are in the lexicon.
    """
    letters = [word for word in words if word[0].isalpha()]
    if sum(word.lower() in _ENGLISH for word in letters) * 10 >= len(letters) > 0:
        return True
    lower = [word for word in letters if word.islower()]
    return sum(word in tagger().lexicon for word in lower) * 4 >= len(lower) * 3 > 0
