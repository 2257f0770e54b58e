"""Highlights of a passage: the words that match the query's words, and the lines to show."""

import re
from collections.abc import Iterable

from cli.terminal_text import one_line

_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?。])\s+")
_ENDINGS = ("ing", "ed", "es", "s")
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been but by can could did do does for from had has have he her him his how i if in "
        "into is it its me my no not of on or our she should so that the their them then there these they this "
        "those to us was we were what when where which while who whom whose why will with would you your",
    )
)


def query_words(query: str) -> re.Pattern[str] | None:
    """Returns a pattern for the query's content words in all inflections; `None` if it has none."""
    stems = {_stem(word) for word in (w.casefold() for w in _WORD.findall(query)) if word not in _STOP_WORDS}
    if not stems:
        return None
    longest_first = sorted((stem for stem in stems if stem), key=lambda stem: (-len(stem), stem))
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})(?:e?s|e?d|ing)?\b", re.IGNORECASE)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word


def snippet(text: str, words: re.Pattern[str] | None, limit: int) -> str:
    """Returns the part of `text` with most of the query's different words, in complete sentences if they fit."""
    text = one_line(text)
    if len(text) <= limit:
        return text
    starts = [0, *(match.end() for match in _SENTENCE.finditer(text))]
    best = max(starts, key=lambda start: (_distinct_matches(words, text[start : start + limit]), -start))
    piece = text[best : best + limit]
    if best + limit < len(text):
        piece = piece[: max(piece.rfind(" "), limit // 2)].rstrip() + " …"
    return f"… {piece}" if best else piece


def _distinct_matches(words: re.Pattern[str] | None, text: str) -> int:
    return len({_stem(found.casefold()) for found in words.findall(text)}) if words else 0


def match_spans(words: re.Pattern[str] | None, text: str) -> Iterable[tuple[int, int]]:
    """Yields the positions in `text` of words that match."""
    return (match.span() for match in words.finditer(text)) if words else ()
