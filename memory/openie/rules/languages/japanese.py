"""Statements of Japanese: the particle after a noun phrase says what it does, and the verb comes last.

Words and parts of speech are Sudachi's, with its small dictionary. は and が mark the subject, を the object; に, で, から
and the like stand as prepositions do elsewhere. A verb right before a noun describes it, and its clause is left out.
"""

import re
from collections.abc import Iterator
from functools import cache
from threading import local
from typing import Any

from memory.openie.rules.languages import words as w
from memory.openie.rules.languages.words import Phrase, Statement, Word, joined

_STOP = re.compile("[。！？!?\n]+")
_SPACE = re.compile(r"(?<=[\u3040-\u30ff\u3400-\u9fff、。])\s+(?=[\u3040-\u30ff\u3400-\u9fff])")
MAX_CHARS = 400
"""Of a sentence; a longer one is cut."""
_OBLIQUE = frozenset({"に", "で", "から", "と", "へ", "より", "まで", "によって", "により", "として", "にて"})
_COMPOUND = re.compile("^(?:によって|により|として|において|にて)")


@cache
def _dictionary() -> Any:
    from sudachipy import Dictionary

    return Dictionary(dict="small")


_OWN = local()
"""Each thread's tokenizer: one that is at work refuses another caller."""


def _tokenizer() -> Any:
    if not hasattr(_OWN, "tokenizer"):
        _OWN.tokenizer = _dictionary().tokenizer()
    return _OWN.tokenizer


def japanese_sentences(text: str) -> Iterator[tuple[list[Word], list[Statement]]]:
    """Each sentence's words with their tags, and what it states."""
    text = _SPACE.sub("", text)
    at = 0
    for stop in [*_STOP.finditer(text), None]:
        end = stop.start() if stop else len(text)
        asked = bool(stop and ("？" in stop.group() or "?" in stop.group())) or text[at:end].endswith("か")
        for start in range(at, end, MAX_CHARS):
            morphemes = _tokenizer().tokenize(text[start : min(start + MAX_CHARS, end)])
            words = [_word(each) for each in morphemes if each.surface().strip()]
            yield words, [] if asked else list(_statements(words))
        at = stop.end() if stop else end


def _word(morpheme: Any) -> Word:
    kind, sub, third = morpheme.part_of_speech()[:3]
    text = morpheme.surface()
    if kind == "名詞":
        if sub == "数詞" or text[0].isdigit():
            return Word(text, w.NUMBER)
        latin = text[0].isascii() and text[0].isalpha()
        adverbial = "副詞可能" in third and not latin
        return Word(text, w.NAME if sub == "固有名詞" or latin else w.ADVERB if adverbial and len(text) < 2 else w.NOUN)
    if kind in ("接尾辞", "接頭辞") and third != "動詞":
        return Word(text, w.NOUN)
    if kind == "代名詞":
        return Word(text, w.PRONOUN)
    if kind == "助詞":
        return Word(text, w.CONJUNCTION if sub == "接続助詞" else w.PREPOSITION)
    if kind == "動詞":
        return Word(text, w.VERB)
    if kind == "助動詞":
        return Word(text, w.AUXILIARY)
    if kind in ("形容詞", "形状詞", "連体詞"):
        return Word(text, w.ADJECTIVE)
    if kind in ("補助記号", "記号"):
        # "イアン・マードック" is one name.
        return Word(text, w.NAME if text in "・=＝" else w.COMMA if text in "、，," else w.MARK)
    return Word(text, w.ADVERB)


def _statements(words: list[Word]) -> Iterator[Statement]:
    subject: Phrase | None = None
    roles: list[tuple[str, Phrase]] = []
    phrase: list[Word] = []
    i = 0
    while i < len(words):
        word = words[i]
        if word.tag in (w.NOUN, w.NAME, w.NUMBER) or (word.text == "の" and phrase):
            phrase.append(word)
        elif word.tag == w.PRONOUN:
            phrase = [word]
        elif word.tag == w.PREPOSITION and phrase:
            particle, i = _particle(words, i)
            made, phrase = _phrase(phrase), []
            if made and particle in ("は", "が") and (particle == "は" or subject is None):
                subject = made
            elif made and (particle == "を" or particle in _OBLIQUE):
                roles.append((particle, made))
        elif word.tag in (w.VERB, w.AUXILIARY):
            verb, end = _verb(words, i, phrase)
            following = words[end].tag if end < len(words) else ""
            goes_on = following in (w.NOUN, w.NAME, w.PRONOUN, w.ADJECTIVE)
            made = _phrase(phrase)
            if goes_on:
                roles = []  # it describes the noun that follows
            elif subject:
                if word.tag == w.AUXILIARY and made:
                    yield Statement(subject, verb, made, direct=True)
                elif word.tag == w.VERB:
                    yield from (
                        Statement(subject, verb if particle == "を" else f"{verb} {particle}", role, particle == "を")
                        for particle, role in roles
                    )
                roles = []
            phrase, i = [], end
            continue
        elif word.tag in (w.COMMA, w.MARK):
            phrase = []
        i += 1


def _particle(words: list[Word], i: int) -> tuple[str, int]:
    """The particle at `i`, with what belongs to it ("によって"; は after another), and the place of its last word."""
    rest = "".join(word.text for word in words[i : i + 4])
    compound = _COMPOUND.match(rest)
    if compound:
        end, length = i, 0
        while length < len(compound.group()):
            length += len(words[end].text)
            end += 1
        return compound.group(), end - 1
    text = words[i].text
    if i + 1 < len(words) and words[i + 1].text in ("は", "も") and text in _OBLIQUE:
        return text, i + 1
    return ("は" if text == "も" else text), i


def _verb(words: list[Word], i: int, phrase: list[Word]) -> tuple[str, int]:
    """The verb at `i` with its endings ("作ら" "れ" "た"), and where it ends. "する" takes the noun before it along."""
    text = "".join(word.text for word in phrase) if words[i].tag == w.VERB and words[i].text[0] in "しさすで" else ""
    while i < len(words) and (words[i].tag in (w.VERB, w.AUXILIARY) or words[i].text in ("て", "で", "ない")):
        text += words[i].text
        i += 1
    return text, i


def _phrase(words: list[Word]) -> Phrase | None:
    while words and words[-1].text == "の":
        words = words[:-1]
    if not words:
        return None
    text = joined(words)
    content = [word for word in words if word.tag in (w.NOUN, w.NAME)]
    if words[0].tag == w.PRONOUN:
        return Phrase(text, False, 0)
    number = any(word.tag == w.NUMBER for word in words) and len(content) < 2
    return Phrase(text, any(word.tag == w.NAME for word in words), len(content) or 1, number)
