"""Words and sentences of languages that put spaces between words."""

import re
from functools import cache

MAX_WORDS = 120
"""Of a sentence; a longer one is cut."""

_ELIDED = {"fr", "it", "ca"}
"""Languages that join an article to the next word: "l'homme", "dell'acqua"."""
_ABBREVIATIONS = {
    "de": "abb abs abschn anm art aufl bd bspw bzgl bzw ca dipl dr etc evtl exkl geb gegr gest ggf hl hrsg hr inkl ing jh jr "
    "kap lat max min mind mio mrd nr og prof sog st std str tab tel u usw v vgl vol z zb zt zzgl d h b",
    "fr": "al apr art av boul c cf chap dr éd etc ex fig hab j m me mgr mlle mm mme no p pp prof s st ste t vol",
    "es": "aprox art av avda cap d dr dra ed ej etc fig gral izq lic núm p pág págs pp prof sr sra srta ud uds vol",
    "it": "art avv c ca cap cfr dott dr ecc ed es fig geom ing n nr p pag pagg pp prof s sig tel v vol",
    "pt": "aprox art av cap d dr dra ed etc ex fig n núm p pág págs pp prof sr sra vol",
    "nl": "afb afd b blz bijv bv ca dhr d dr drs e enz etc evt excl fig h ing incl ir jl m mevr mr nr o p pag prof r resp "
    "st t tel v vgl vol w zgn",
}
_MARKS = frozenset(".!?…")
_WORD_OR_MARK = (
    r"\d+(?:[.,:]\d+)*%?|[^\W\d_](?:\.[^\W\d_])+\b\.?|{elided}"
    r"[\w\u0300-\u036f]+(?:[-–&/@+.'’][\w\u0300-\u036f]+)*|[^\w\s]"
)


@cache
def _token(code: str) -> re.Pattern[str]:
    return re.compile(_WORD_OR_MARK.replace("{elided}", r"[^\W\d_]+['’](?=\w)|" if code in _ELIDED else ""))


@cache
def _abbreviations(code: str) -> frozenset[str]:
    return frozenset(_ABBREVIATIONS.get(code, "").split())


def split_sentences(text: str, code: str) -> list[list[str]]:
    """The words and marks of each sentence, without the mark that ends it unless that is "?"."""
    found: list[list[str]] = []
    current: list[str] = []
    words = _token(code).findall(text)
    for i, word in enumerate(words):
        if word in _MARKS and (word != "." or _ends(current, words, i, code)):
            if current:
                found.append([*current, "?"] if word == "?" else current)
            current = []
            continue
        if word == "." and current and current[-1][-1].isalnum():
            current[-1] += "."  # "3. Mai", "Dr. Weiß"
            continue
        current.append(word)
        if len(current) >= MAX_WORDS:
            found.append(current)
            current = []
    if current:
        found.append(current)
    return found


def _ends(current: list[str], words: list[str], i: int, code: str) -> bool:
    """Whether the full stop at `i` ends its sentence rather than an abbreviation or an ordinal ("am 3. Mai")."""
    if i + 1 == len(words):
        return True
    following = words[i + 1]
    if following[0].islower() or following in (",", ";", ":", ")"):
        return False
    before = current[-1] if current else ""
    if len(before) == 1 and before.isalpha():
        return False
    return not (before.casefold() in _abbreviations(code) or (before.isdigit() and len(before) < 3))
