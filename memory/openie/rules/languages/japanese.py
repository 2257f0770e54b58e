"""Finds names and nouns in Japanese with Sudachi and its small dictionary; without the extra `multilingual`, by characters
only."""

import re
from collections.abc import Iterator
from functools import cache
from threading import local
from typing import Any

from memory.openie.rules.languages.optional_taggers import INSTALLED
from memory.openie.rules.languages.words import NAME, NOUN, NUMBER, OTHER, Word, split_at_names

_STOP = re.compile("[。！？!?\n]+")
_SPACE = re.compile(r"(?<=[\u3040-\u30ff\u3400-\u9fff、。])\s+(?=[\u3040-\u30ff\u3400-\u9fff])")
_FOREIGN = re.compile(r"[ァ-ヺー]{2,12}(?:[・=＝][ァ-ヺー]{1,12}){0,3}[・=＝][ァ-ヺー]{2,12}")
"""Foreign names of several parts: "イアン・マードック", "レオナルド・ダ・ヴィンチ"."""
_RUNS = re.compile(
    r"(?P<name>[A-Za-z][\w.+-]*)|(?P<number>[0-9０-９]+)|(?P<noun>[ァ-ヺー]{2,}|[\u3400-\u9fff々]{2,})|\S", re.A
)
"""Names in Latin letters, numbers, nouns in Katakana or Chinese characters, and single other characters."""
MAX_CHARS = 400
"""Maximum number of characters of a sentence; a longer sentence is divided."""


@cache
def _dictionary() -> Any:
    from sudachipy import Dictionary

    return Dictionary(dict="small")


_OWN = local()
"""Each thread has its own tokenizer, because a tokenizer in use refuses other callers."""


def _tokenizer() -> Any:
    if not hasattr(_OWN, "tokenizer"):
        _OWN.tokenizer = _dictionary().tokenizer()
    return _OWN.tokenizer


def japanese_sentences(text: str) -> Iterator[list[Word]]:
    for sentence in _STOP.split(_SPACE.sub("", text)):
        for start in range(0, len(sentence), MAX_CHARS):
            words: list[Word] = []
            for piece, is_name in split_at_names(sentence[start : start + MAX_CHARS], _FOREIGN):
                if is_name:
                    words.append(Word(piece, NAME))
                else:
                    words += _tagged(piece) if INSTALLED else _runs(piece)
            yield words


def _tagged(text: str) -> list[Word]:
    return [_word(each) for each in _tokenizer().tokenize(text) if each.surface().strip()]


def _runs(text: str) -> list[Word]:
    tags = {"name": NAME, "number": NUMBER, "noun": NOUN}
    return [Word(each.group(), tags.get(each.lastgroup or "", OTHER)) for each in _RUNS.finditer(text)]


def _word(morpheme: Any) -> Word:
    kind, sub, third = morpheme.part_of_speech()[:3]
    text = morpheme.surface()
    if kind == "名詞":
        if sub == "数詞" or text[0].isdigit():
            return Word(text, NUMBER)
        if sub == "固有名詞" or (text[0].isascii() and text[0].isalpha()):
            return Word(text, NAME)
        return Word(text, OTHER if "副詞可能" in third else NOUN)
    if kind in ("接尾辞", "接頭辞") and third != "動詞":
        return Word(text, NOUN)
    return Word(text, OTHER)
