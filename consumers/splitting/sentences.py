"""Where sentences begin: a conservative rule that keeps to one pass over the text.

A rule of our own rather than a library: the trained splitters need a model's download or cost quadratic time on text
without stops, and the boundaries only have to be the same each time, not perfect. When in doubt nothing is cut.
"""

import re

_CLOSERS = "\"'”’»›)\\]}」』）】〕"
# The run of marks is always taken whole (possessive), whatever follows: that keeps "......" of any length linear.
_STOP = re.compile(rf"(?P<cjk>[。！？｡]++[{_CLOSERS}]*+\s*+)|(?P<stop>[.!?…]++)[{_CLOSERS}]*+(?P<space>\s*+)")
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘«]*\Z")
_ABBREVIATIONS_WORDS = """
    mr mrs ms dr prof st rev hon gen col maj capt lt sgt sr jr messrs mme mlle fr pres gov sen rep
    e.g i.e cf vs viz al approx ca c etc no nos vol vols pp p fig figs eq eqs sec ch ed eds trans dept univ
    inc ltd co corp bros jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun
    bzw z.b d.h u.a usw nr str hr fa m.e p.ex
"""
_ABBREVIATIONS = frozenset(_ABBREVIATIONS_WORDS.split())


def sentence_starts(text: str) -> list[int]:
    """Offsets at which sentences begin, ascending, the first one 0; empty for an empty text."""
    starts = [0] if text else []
    for match in _STOP.finditer(text):
        end = match.end()
        if end < len(text) and (match["cjk"] or _ends_sentence(text, match)):
            starts.append(end)
    return starts


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    if not match["space"]:
        return False
    following = text[match.end()]
    if following.islower() or following in ",;:":
        return False
    if match["stop"] != ".":
        return True
    word = _LAST_WORD.search(text[max(0, match.start() - 24) : match.start()])
    before = word.group() if word else ""
    initial = len(before) == 1 and before.isalpha() and before.isupper() and before != "I"
    return not initial and before.casefold() not in _ABBREVIATIONS
