"""Splits text into words and sentences. Every pattern here can match in one way only, so the time is linear in the length of
the text."""

import re
from collections.abc import Sequence

from memory.openie.rules.grammar.pos_tagger import tagger


def word_set(text: str) -> frozenset[str]:
    """Returns the words of a list written as text."""
    return frozenset(text.split())


# Python's \w excludes combining marks, which would split words of Indic scripts, Thai and pointed Arabic.
_WORD = (
    r"[\w\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0970-\u0dff"
    r"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u200c\u200d]"
)
# In this order: numbers with separators (including times); dotted abbreviations; a possessive ending; words joined by hyphens,
# apostrophes and similar marks; any other single character.
_TOKEN = re.compile(
    rf"\d+(?:[.,:]\d+)+(?:%|\w+)?|[^\W\d_](?:\.[^\W\d_])+\b\.?|['’]s\b|{_WORD}+(?:(?:[-–&/@+'’.]|::){_WORD}+)*|``|''|--+|[^\w\s]"
)
_POSSESSIVE = ("'s", "’s", "'S")
_CONTRACTED = ("'re", "'ve", "'ll", "'d", "'m", "’re", "’ve", "’ll", "’d", "’m", "n't", "n’t")
_SHORTENED = {"wo": "will", "ca": "can", "sha": "shall", "ai": "is"}
_APART = re.compile(r" (?=(?:n['’]t|['’](?:s|re|ve|ll|d|m))(?: |$))", re.IGNORECASE)
_LOOSE_HYPHEN = re.compile(r"(?<=[^\W\d])(?:- | -)(?=\w)")
_SPACED_HYPHEN = re.compile(r"(?<=\w) - (?=\w)")
_ENDS = frozenset(".!?…。！？।؟۔→►⇒")
_QUESTIONS = frozenset("?？؟")
_CLOSERS = frozenset({'"', "”", "''", "'", "’", ")", "]", "»"})
_OPENERS = frozenset({'"', "“", "``", "'", "‘", "(", "[", "«"})
_ABBREVIATIONS = word_set(
    "c b bf d r fl p mr mrs ms dr prof st sr jr rev hon gen col lt sgt capt maj cmdr adm gov sen rep pres mt ft no nos vs "
    "etc al inc ltd co corp bros dept univ approx est fig vol ed eds pp ca cf eg ie viz jan feb mar apr jun jul aug sep "
    "sept oct nov dec"
)
_ABBREVIATION_MAX = 4
"""Maximum number of letters of an abbreviation that is also a word ("min", "fig")."""
MAX_SENTENCE = 120
"""Maximum number of tokens of a sentence; a longer sentence is divided. Sentences of prose are shorter. The limit bounds the
time of the parser."""
CONTINUED = "…"
"""First token of the second part of a divided sentence, whose subject may be in the first part."""


def tokenize(text: str) -> list[str]:
    """Returns words, numbers and single marks in order; a possessive ending is a separate token."""
    found: list[str] = []
    if "- " in text or " -" in text:
        # Some tokenised corpora contain "half- brother" or "half - brother"; in other prose, " - " is a dash.
        text = _LOOSE_HYPHEN.sub("-", text)
        if "``" in text or " ''" in text or " 's " in text:
            text = _SPACED_HYPHEN.sub("-", text)
    for token in _TOKEN.findall(text):
        if token[-2:] in _POSSESSIVE:
            found += [token[:-2], "'s"] if len(token) > 2 else ["'s"]
        elif token.endswith(_CONTRACTED) and len(token) > 3:
            end = next(ending for ending in _CONTRACTED if token.endswith(ending))
            stem = token[: -len(end)]
            found += [_SHORTENED.get(stem.lower(), stem) if end[0] == "n" else stem or token, end.replace("’", "'")]
        else:
            found.append(token)
    return found


def join_tokens(words: Sequence[str]) -> str:
    """Joins tokens to a text; "do" and "n't" become one word, and so do a name and its possessive ending."""
    text = " ".join(words)
    return _APART.sub("", text) if "'" in text or "’" in text else text


def split_sentences(text: str) -> list[list[str]]:
    """Returns the tokens of each sentence of one block of prose, without the final mark unless it is "?"."""
    found: list[list[str]] = []
    current: list[str] = []
    words = tokenize(text)
    last = len(words) - 1
    for i, word in enumerate(words):
        if word in _ENDS:
            if i == last or word != "." or _ends(current, words, i):
                if current not in ([], [CONTINUED]):
                    found.append([*current, "?"] if word in _QUESTIONS and not _goes_on(words, i) else current)
                current = []
            continue
        if not current and word in _CLOSERS and word not in _OPENERS:
            continue
        current.append(word)
        if len(current) >= MAX_SENTENCE:
            found.append(current)
            current = [CONTINUED]
    if current not in ([], [CONTINUED]):
        found.append(current)
    return found


def _goes_on(words: list[str], i: int) -> bool:
    """Whether the question mark at `i` belongs to a title: "Where's Jack? is a film"."""
    return i + 1 < len(words) and words[i + 1][0].islower()


def _ends(current: list[str], words: list[str], i: int) -> bool:
    """Whether the full stop at `i` ends a sentence, not an abbreviation."""
    following = words[i + 1]
    if following in _CLOSERS and i + 2 < len(words):
        following = words[i + 2] if following not in _OPENERS or words[i + 2][0].isupper() else following
    is_call = words[i + 2 : i + 4] == ["(", ")"]
    before = current[-1] if current else ""
    # "as a string. code is": a common word of this many letters is not an abbreviation.
    is_word = len(before) > _ABBREVIATION_MAX and before.islower() and tagger().is_common(before)
    if (following[0].islower() and not is_call and not is_word) or following in (",", ";", ":"):
        return False
    if not current:
        return True
    return not (before.lower() in _ABBREVIATIONS or (len(before) == 1 and before.isupper()))
