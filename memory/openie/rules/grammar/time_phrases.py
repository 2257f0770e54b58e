"""Finds phrases of time or frequency without a preposition: "last year", "every autumn", "once a week", "yesterday".

They look like a subject or an object: "Every autumn her team pours dye" is not about an autumn team. They are removed before
the sentence is tagged, which also makes the other tags more accurate. A time phrase stays if it follows a preposition, begins a
longer noun phrase ("one day trip"), or is the subject ("last year was wet").
"""

from collections.abc import Sequence

from memory.openie.rules.grammar.dates import CALENDAR, MONTHS
from memory.openie.rules.grammar.pos_tagger import tagger
from memory.openie.rules.grammar.tokenizer import word_set

_UNITS = word_set(
    "day night morning afternoon evening week weekend month quarter season year decade century summer winter"
)
_OCCASIONS = word_set("time fall")
_MANY = word_set(
    "days nights mornings afternoons evenings weeks weekends months seasons years decades centuries summers winters"
)
_COUNTED = _MANY | word_set("times hours minutes")
_NUMBERS = word_set("two three four five six seven eight nine ten eleven twelve several many few")
_ONE = word_set("every each last next this that one some all")
_SEVERAL = word_set("most some all these those")
_THE = word_set("the that this")
_ORDER = word_set("next following previous same very")
_DAYS = word_set("yesterday today tomorrow tonight")
_AFTER = word_set("later earlier ago long")
_WEEKDAYS = CALENDAR - MONTHS - word_set("spring autumn")
_OPENS = _WEEKDAYS | MONTHS
_GOES_ON = word_set(
    "in on at for with by from to after before during because as when while where until since and or but so"
)
"""Words that may follow a time phrase; "of" and nouns may not."""


def without_time_phrases(words: Sequence[str]) -> Sequence[str]:
    """Returns the sentence's tokens without such phrases, and with a comma between "On Tuesday" and a name."""
    if not any(word.lower() in _MAY_END for word in words):
        return words
    kept: list[str] = []
    i = 0
    while i < len(words):
        if end := _time_end(words, i):
            i = end
            continue
        if i == 2 and len(kept) == 2 and _opens_with_date(words):
            kept.append(",")
        kept.append(words[i])
        i += 1
    return kept or words


_MAY_END = _UNITS | _OCCASIONS | _COUNTED | _DAYS | _OPENS | CALENDAR


def _time_end(words: Sequence[str], i: int) -> int:
    """Returns the end of the time phrase that starts at `i`; 0 if there is none."""
    word = words[i].lower()
    before = words[i - 1] if i else ""
    if words[i][0].isupper() and not _opens(before):
        return 0
    if word in _DAYS:
        end = i + 1 + (i + 1 < len(words) and words[i + 1] in _UNITS)
        return end if not _is_bound(before, of_verb=False) and _may_follow(words, end, _opens(before)) else 0
    end = _unit_end(words, i, word)
    if not end or _is_bound(before, of_verb=True):
        return 0
    if end < len(words) and words[end] in _AFTER:
        end += 1
    return end if _may_follow(words, end, True) else 0


def _unit_end(words: Sequence[str], i: int, word: str) -> int:
    following = [w.lower() for w in words[i + 1 : i + 4]] + ["", "", ""]
    first, second = following[:2]
    if word in _ONE and (_is_unit(words, i + 1) or (first in _OCCASIONS and word not in ("some", "all"))):
        return i + 2
    if word in _SEVERAL and first in _MANY:
        return i + 2
    if word in _THE and first in _ORDER and _is_unit(words, i + 2):
        return i + 3
    often = i if word in ("once", "twice") else i + 1 if word in _NUMBERS and first == "times" else -1
    if often >= 0 and following[often - i] in ("a", "an", "per", "each", "every") and _is_unit(words, often + 2):
        return often + 3
    if word in _NUMBERS and first in _COUNTED and i and second not in ("as", "more", "the", *_AFTER, "old"):
        return i + 2
    return 0


def _is_unit(words: Sequence[str], i: int) -> bool:
    if i >= len(words):
        return False
    lower = words[i].lower()
    return words[i] in _UNITS or words[i] in ("spring", "autumn") or (lower in _OPENS and words[i][0].isupper())


def _opens(before: str) -> bool:
    """Whether a clause begins after the word `before`, so that a capital is no sign of a name."""
    return not before or not before[-1].isalnum()


def _is_bound(before: str, of_verb: bool) -> bool:
    """Whether the previous word governs the phrase: it is a preposition, an article, an adjective or a verb."""
    tag = tagger().lexicon.get(before.lower(), "") if before else ""
    return (
        tag in ("IN", "TO", "DT", "PRP$", "CC", "JJ", "POS") or before == "'s" or (of_verb and tag[:2] in ("VB", "MD"))
    )


def _may_follow(words: Sequence[str], end: int, strict: bool) -> bool:
    """Whether the sentence ends at `end`, or continues there with a new noun phrase or preposition."""
    if end >= len(words):
        return True
    following = words[end]
    lower = following.lower()
    if following == "'s" or lower == "of":
        return False
    if not strict or not following[0].isalnum() or lower in _GOES_ON:
        return True
    return following[0].isupper() or tagger().lexicon.get(lower, "") in ("DT", "PRP", "PRP$", "EX", "RB")


def _opens_with_date(words: Sequence[str]) -> bool:
    """Whether a sentence begins like "On Tuesday Maria": the name after the day is then the subject."""
    prep, date, name = words[0].lower(), words[1], words[2]
    if not (date[0].isupper() and name[0].isupper() and name.isalpha()) or "'s" in words[3:5]:
        return False
    fits = (prep == "on" and date.lower() in _WEEKDAYS) or (prep in ("in", "since", "by") and date.lower() in MONTHS)
    return fits and tagger().lexicon.get(name.lower()) != "NN"
