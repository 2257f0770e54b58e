"""Detects a paragraph's language, which differs from the passage's language if the paragraph quotes English or another
script."""

import re
from collections.abc import Sequence

from memory.openie.rules.grammar.pos_tagger import tagger
from memory.openie.rules.grammar.tokenizer import word_set
from store.text.language import detect_language

_KANA = re.compile("[\u3041-\u30fa]")
_WIDE = re.compile("[\u3041-\u30fa\u3400-\u9fff]")
_LATIN = re.compile("[A-Za-z]")
_LATIN_PER_WIDE = 4
"""Number of Latin letters that contain about as much information as one Chinese character."""
_ENGLISH = word_set(
    "the of and to for with by that from at are were has had have his her its it which an be this not as on he she they who "
    "when their been also but or into after before would can will you we"
)


def paragraph_language(text: str, language: str) -> str:
    """Returns the language of a paragraph in a passage in `language`: that language, English, or the language of its script.

    Scripts are checked separately, because the detector takes a Chinese sentence with two English names for English.
    """
    if len(_WIDE.findall(text)) * _LATIN_PER_WIDE > len(_LATIN.findall(text)):
        return "ja" if _KANA.search(text) else "zh"
    return "en" if language and detect_language(text) == "en" else language


def is_english(words: Sequence[str]) -> bool:
    """Whether words are English prose.

    Words are English if at least one in ten is a function word, or if the lexicon contains three in four of the lower-case
    words.
    """
    letters = [word for word in words if word[0].isalpha()]
    if sum(word.lower() in _ENGLISH for word in letters) * 10 >= len(letters) > 0:
        return True
    lower = [word for word in letters if word.islower()]
    return sum(word in tagger().lexicon for word in lower) * 4 >= len(lower) * 3 > 0
