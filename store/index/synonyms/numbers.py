"""Recognises phrases that are only a number, a date, a version or a section number.

Numbers get no synonyms, because an encoder hardly distinguishes them: for example, "debian 7" is near "debian 12", and dates
are near each other. The rules depend only on the texts.
"""

import re

_MONTHS = (
    "january february march april may june july august september october november december jan feb mar apr jun jul "
    "aug sep sept oct nov dec januar jänner februar märz mai juni juli oktober dezember janvier février mars avril "
    "juin juillet août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio agosto "
    "septiembre octubre noviembre diciembre gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre "
    "janeiro fevereiro março maio junho julho setembro outubro dezembro januari februari maart mei augustus"
)
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion first second third fourth "
    "fifth sixth seventh eighth ninth tenth eleventh twelfth"
)
_LABEL_WORDS = (
    "a an the of in on at by from to until since and or before after about around early mid late century centuries "
    "year years month months day days am pm utc gmt bc ad bce ce version versions release releases ver rev revision "
    "section sections chapter chapters part parts page pages step steps table tables figure figures fig example line "
    "lines item note no number numbers level appendix volume vol issue"
)
"""Words that label or join numbers and have no other meaning."""
_CALENDAR = frozenset((_MONTHS + " " + _DAYS).split())
_SPELT = frozenset(_WORDS.split())
_LABELS = frozenset(_LABEL_WORDS.split())
_NUMBER = re.compile(r"[vr]?\d+(?:st|nd|rd|th|er|rc|beta|alpha|[a-z])?\d*|(?:\d+[年月日号號])+")
_ROMAN = re.compile(r"(?=[ivx])x{0,3}(?:ix|iv|v?i{0,3})")


def is_number(phrase: str) -> bool:
    """Whether a normalised phrase is only a number, a date, a version or a section number, for example "28 december 2015",
    "version 2 5", "1990s", "section 4 2" or "march"."""
    words = phrase.split()
    others = [word for word in words if word not in _LABELS]
    if not others or not all(is_numeral(word) or word in _CALENDAR for word in others):
        return False
    # "part i" is a number; "may i" does not occur; a single "x" is a letter.
    return len(words) > 1 or not _ROMAN.fullmatch(phrase)


def is_numeral(word: str) -> bool:
    return bool(_NUMBER.fullmatch(word) or _ROMAN.fullmatch(word)) or word in _SPELT
