"""Decides from the texts of two phrases whether they can name the same thing.

A high cosine shows that two phrases are related, not that they name the same thing: "current vault" is near "new vault", "cmd
c" near "cmd x", and "johann michael bach" near "johann christoph bach". Therefore two phrases whose cosine reaches the
threshold are synonyms only if their texts also allow it. The rule depends on the two texts and, for phrases without a common
word, also on their cosine. The rule does not depend on other phrases or on the order of arrival.
"""

import re
from collections.abc import Callable
from functools import lru_cache

import snowballstemmer

from store.index.synonyms.numbers import is_numeral
from store.text.terms import folded
from store.text.words import UNSPACED, has_cjk
from store.types import SynonymRule

PairRule = Callable[[int, int, float], bool]
"""(row, other row, cosine) -> whether these two phrases, whose cosine reaches the threshold, are synonyms."""

OTHER_WORDS_CLOSENESS = 0.4
"""Two phrases without a common word need a cosine of at least threshold + this × (1 - threshold), for example 0.88 if the
threshold is 0.8."""

_LINKING_TEXT = (
    "the an of and this that these those my your his her its our their all some many several various each every any both most "
    "rest whole entire "
    "der die das den dem des ein eine einen einem einer eines von vom und dieser diese dieses diesem diesen dein deine deinem "
    "deinen deiner ihr ihre ihrem ihren ihrer sein seine seinem seinen seiner alle allen aller mehrere "
    "le la les une de du et ce cette ces cet mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs tous toutes "
    "plusieurs "
    "el los las una del este esta estos estas mi mis tu tus su sus nuestro nuestra todo toda todos todas varios varias "
    "il di"
)
_LINKING_WORDS = frozenset(_LINKING_TEXT.split())
"""Articles, determiners and words that join two nouns. They do not change a name unless they are its last word: "king of the
belgians" equals "belgian king" and "your vault" equals "vault", but "group a" does not equal "group"."""

_ENDINGS = tuple(
    (frozenset(endings.split(",")), shortest)
    for endings, shortest in (
        (",s", 3),
        (",es", 3),
        (",ed,ing,s", 4),
        ("e,ed,ing,es", 3),
        ("y,ies,ied", 3),
        (",e,en,es,s,em", 4),
        ("e,en,em,es", 3),
        ("er,en,em,es", 4),
        ("el,eln", 3),
        ("er,ern", 3),
        ("is,es", 4),
        ("um,a", 4),
        ("us,i", 4),
        (",n,t,a,ssa,sta,lla,lta,lle,ksi", 4),
    )
)
"""Sets of endings that forms of one word can have, each with the minimum length of the stem: English, Romance plurals, German,
Latin plurals, Finnish. Endings of derived words are not included, because "export" and "exporter" are two things."""
_FINNISH_CASES = 3
"""Minimum length of the longer ending if the endings are from the last set (Finnish), because a single letter may distinguish
names such as "amir" and "amira"."""

_STEMMERS = tuple(
    (first, last, snowballstemmer.stemmer(language).stemWord)
    for first, last, language in (("α", "ω", "greek"), ("а", "я", "russian"), ("ء", "ي", "arabic"))
)
_STEMMED_LETTERS = 4
_WORD = re.compile(f"[{UNSPACED}]+|[^\\s{UNSPACED}]+")
_DIGITS = re.compile(r"\d+")
_SPELLINGS = (
    (re.compile(r"(.)\1+"), r"\1"),
    (re.compile("ph"), "f"),
    (re.compile("th"), "t"),
    (re.compile("c(?![eiyh])|ck"), "k"),
    (re.compile("our(?=s?$|ed|ing)"), "or"),
    (re.compile("tre(?=s?$)"), "ter"),
    (re.compile("ogue(?=s?$)"), "og"),
    (re.compile("y"), "i"),
    (re.compile("w"), "v"),
    (re.compile("z"), "s"),
    (re.compile("(?<=.{4})e$"), ""),
)
"""Replacements that unify spellings of the same sound, applied in order: "catherine" and "katherine", "organise" and
"organize", "theatre" and "theater"."""
_SPELT_LETTERS = 4
_INITIALS = range(3, 7)


def pair_rule(rule: SynonymRule, text: Callable[[int], str]) -> PairRule | None:
    """Returns the part of `rule` that depends on texts, as a rule for phrase rows; None if cosines alone decide."""
    if not rule.variants:
        return None
    return lambda one, other, cosine: can_be_synonyms(text(one), text(other), cosine, rule.threshold)


def can_be_synonyms(one: str, other: str, cosine: float, threshold: float) -> bool:
    """Whether two normalised phrases, whose cosine reaches the threshold, are synonyms.

    Two phrases are synonyms if they are variants of one wording: in spelling, inflection, word order, joined or separate words,
    or initials. Phrases without a common word are synonyms if their cosine is far above the threshold, for example
    translations, or "kids" and "children". Phrases with both common and different words are not.
    """
    if are_variants(one, other):
        return True
    return cosine >= threshold + OTHER_WORDS_CLOSENESS * (1 - threshold) and _have_other_words(one, other)


def are_variants(one: str, other: str) -> bool:
    """Whether two normalised phrases have the same words, in any order or form, joined or separate, or as initials."""
    left, right = _words(one), _words(other)
    if left == right:
        return True
    lefts, rights = _without(left, right), _without(right, left)
    if len(lefts) == len(rights):
        # Forms of one word are usually sorted alike, so the words are paired in the same way whichever phrase comes first.
        return all(map(_same_word, sorted(lefts), sorted(rights)))
    return _same_joined(one, other) or _is_initials(one, other) or _is_initials(other, one)


def _without(words: tuple[str, ...], others: tuple[str, ...]) -> list[str]:
    """Returns `words` without one occurrence of each word in `others`."""
    left = list(words)
    for word in others:
        if word in left:
            left.remove(word)
    return left


@lru_cache(1 << 16)
def _ordered_words(phrase: str) -> tuple[str, ...]:
    """Returns the phrase's words without accents and linking words. A text in a script without spaces counts as one word."""
    words = _WORD.findall(folded(phrase))
    kept = [word for word in words[:-1] if word not in _LINKING_WORDS]
    if len(words) > 1 and words[0] == "a":
        kept = kept[1:]
    return (*kept, words[-1])


@lru_cache(1 << 16)
def _words(phrase: str) -> tuple[str, ...]:
    return tuple(sorted(_ordered_words(phrase)))


@lru_cache(1 << 16)
def _same_word(one: str, other: str) -> bool:
    """Whether two words without accents are forms or spellings of the same word. Numerals must be equal."""
    if not (one.isalpha() and other.isalpha()) or is_numeral(one) or is_numeral(other):
        return one == other
    return _same_form(one, other) or _spelling(one) == _spelling(other)


def _same_form(one: str, other: str) -> bool:
    for first, last, stem in _STEMMERS:
        if first <= one[0] <= last:
            return min(len(one), len(other)) >= _STEMMED_LETTERS and bool(stem(one) == stem(other))
    one, other = sorted((one, other), key=len)
    common = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    if common == len(one) > 2 and other[common:] in (f"{one[-1]}ing", f"{one[-1]}ed"):
        return True
    for stem_length in range(common, max(common - 3, 2), -1):
        ends = {one[stem_length:], other[stem_length:]}
        for endings, shortest in _ENDINGS:
            if (
                stem_length >= shortest
                and ends <= endings
                and ("ssa" not in endings or max(map(len, ends)) >= _FINNISH_CASES)
            ):
                return True
    return False


@lru_cache(1 << 16)
def _spelling(word: str) -> str:
    """Returns a text that all spellings of a word have in common; the word itself if it is short or not ASCII."""
    if len(word) < _SPELT_LETTERS or not word.isascii():
        return word
    for pattern, replacement in _SPELLINGS:
        word = pattern.sub(replacement, word)
    return word


def _same_joined(one: str, other: str) -> bool:
    """Whether two phrases differ only in their spaces and in the form of their last words."""
    if _DIGITS.findall(one) != _DIGITS.findall(other):
        return False
    a, b = folded(one), folded(other)
    left, right = a.replace(" ", ""), b.replace(" ", "")
    last = min(len(a.rpartition(" ")[2]), len(b.rpartition(" ")[2]))
    return left == right or (last > 2 and left.isalpha() and right.isalpha() and _same_form(left, right))


def _is_initials(short: str, long: str) -> bool:
    """Whether `short` consists of the first letters of the words of `long`."""
    if " " in short or len(short) not in _INITIALS or not short.isalpha():
        return False
    return folded(short) in {
        "".join(word[0] for word in words) for words in (folded(long).split(), _ordered_words(long))
    }


def _have_other_words(one: str, other: str) -> bool:
    """Whether no word of one phrase resembles a word of the other, and all words are letters and not numerals."""
    left, right = _words(one), _words(other)
    if any(is_numeral(word) or not word.isalpha() for word in (*left, *right)):
        return False
    return not any(_are_alike(a, b) for a in left for b in right)


def _are_alike(one: str, other: str) -> bool:
    """Whether two words begin alike, sound alike, or have a common character of a script whose characters are words."""
    if has_cjk(one):
        return not set(one).isdisjoint(other)
    return one[:3] == other[:3] or _same_word(one, other)
