"""The BM25 terms of a text: word stems, or pairs of characters for scripts without spaces.

A passage's words are stemmed with the stemmer of the passage's language. The language is part of a term, so that the Italian
stem "rom" (Roma) differs from the English word "rom". The language of a query is often uncertain, and a memory may contain
several languages. Each query word therefore represents its stems in every language of the index, and it matches a passage
whatever language was detected for the passage. A passage's terms depend only on that passage.

Each word counts once in the length of its passage. A word may also be spelt without accents, or with "ue" for "ü". If that
spelling has another stem, the passage gets that term too: "oublie" finds "oublié", and "Mueller" finds "Müller".
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from unicodedata import combining, is_normalized, normalize

import snowballstemmer

from store.text.language import detect_language
from store.text.query_words import CACHED_QUERIES, content_words
from store.text.words import is_unspaced, split_words

ENGLISH = "en"
"""Terms of English texts, and of texts whose language is unknown or has no stemmer, have no language mark."""

STEMMERS = {
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    ENGLISH: "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "lt": "lithuanian",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "tr": "turkish",
}
"""Languages with a Snowball stemmer, by the detector's codes."""

_SEPARATOR = "\x1f"
"""Separates a stem from the code of its language. The separator never occurs in a word."""

_STROKES = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})
_ACCENTS = "".join(map(chr, range(0x300, 0x370)))
_PLAIN = _STROKES | dict.fromkeys(map(ord, _ACCENTS), "")
_MARKED = re.compile(f"[{_ACCENTS}{''.join(map(chr, _STROKES))}]+")
_SPELT_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_stem_of = {code: snowballstemmer.stemmer(name).stemWord for code, name in STEMMERS.items()}


def passage_terms(text: str) -> tuple[Counter[str], str, int]:
    """Returns the count of each term in a passage, the language of the terms, and the passage's length in words."""
    code = detect_language(text)
    code = code if code in STEMMERS else ENGLISH
    words = Counter(split_words(text))
    found: Counter[str] = Counter()
    for word, count in words.items():
        for term in _terms(word, code):
            found[term] += count
    return found, code, words.total()


def query_terms(query: str, languages: Iterable[str]) -> Mapping[tuple[str, ...], int]:
    """Returns how often the query contains each word; a word is represented by the tuple of its terms in `languages`.

    Function words of languages other than English are omitted, unless no other word remains (`store.text.query_words`).
    """
    return _query_terms(query, tuple(sorted({ENGLISH, *languages})))


@lru_cache(CACHED_QUERIES)
def _query_terms(query: str, codes: tuple[str, ...]) -> Mapping[tuple[str, ...], int]:
    return Counter(_terms_in(word, codes) for word in content_words(query))


def language_of(term: str) -> str:
    """Returns the language whose stemmer produced a term."""
    return term.rpartition(_SEPARATOR)[2] if _SEPARATOR in term else ENGLISH


@lru_cache(1 << 12)
def _terms_in(word: str, codes: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the distinct terms of a word in several languages."""
    return tuple(dict.fromkeys(term for code in codes for term in _terms(word, code)))


@lru_cache(1 << 16)
def _terms(word: str, code: str) -> tuple[str, ...]:
    """Returns the terms of a word in one language: first its stem, then the stems of its other spellings."""
    if is_unspaced(word):
        return (word,)
    stem_of, mark = _stem_of[code], "" if code == ENGLISH else _SEPARATOR + code
    if word.isascii():
        return (stem_of(word) + mark,)
    spellings = (word, without_accents(word), without_accents(word.translate(_SPELT_OUT)))
    return tuple(dict.fromkeys(without_accents(stem_of(spelling)) + mark for spelling in spellings))


def folded(text: str) -> str:
    """Converts a text for comparison by letters: case-folded, NFKC-normalised, without accents and strokes."""
    if text.isascii():
        return text.lower()
    text = normalize("NFD", _composed(_composed(text).casefold()))
    return normalize("NFC", _MARKED.sub(lambda found: found[0].translate(_PLAIN), text))


def _composed(text: str) -> str:
    return text if is_normalized("NFKC", text) else normalize("NFKC", text)


def without_accents(word: str) -> str:
    """Returns a word in Latin letters without accents, other marks and strokes; any other word unchanged."""
    if word.isascii() or not "a" <= normalize("NFD", word[:1]).translate(_STROKES)[:1] <= "z":
        return word
    return "".join(c for c in normalize("NFD", word.translate(_STROKES)) if not combining(c))
