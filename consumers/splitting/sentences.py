"""Finds the beginnings of sentences by a conservative rule, in one pass over the text.

No library is used: trained splitters need a downloaded model or take quadratic time on text without full stops. Boundaries must
be reproducible, not perfect. In doubt, the text is not split.
"""

import re

_CLOSERS = "\"'”’»›)\\]}」』）】〕"
# Possessive quantifiers match runs of marks without backtracking, so that a text like "......" takes linear time.
_STOP = re.compile(rf"(?P<cjk>[。！？｡]++[{_CLOSERS}]*+\s*+)|(?P<stop>[.!?…]++)[{_CLOSERS}]*+(?P<space>\s*+)")
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘«]*\Z")
# German writes ordinals with a full stop: "am 3. Mai", "im 19. Jahrhundert".
_ORDINAL = re.compile(r"(?<!\d)\d{1,2}\Z")
_COUNTED = re.compile(
    "(?:Jänner|Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jahrhundert|Jh|Jahrtausend|"
    "Auflage|Weltkrieg|Kapitel|Geburtstag|Lebensjahr|Platz|Tag|Woche|Monat|Jahr)"
)
_ABBREVIATIONS = frozenset(
    """
    mr mrs ms dr prof st rev hon gen col maj capt lt sgt sr jr messrs mme mlle fr pres gov sen rep
    e.g i.e cf vs viz al approx ca c etc no nos vol vols pp p fig figs eq eqs sec ch ed eds trans dept univ
    inc ltd co corp bros jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun
    bzw z.b d.h u.a usw nr str hr fa m.e p.ex
    abb abs bd bspw bzgl evtl exkl geb gegr gest ggf hrsg inkl jh kap mind mio mrd od sog std tab tel u.ä u.u usf v.a vgl z.t zb
    chap éd env j.-c boul mgr mm ste c.-à-d n.b
    sra srta dra ud uds núm pág págs aprox avda p.ej ee.uu
    sig dott dott.ssa sig.ra avv ecc pagg p.es s.p.a cfr
    p.e n.º ltda séc
    bijv bv blz d.w.z dhr drs enz evt excl i.p.v m.a.w m.b.t mevr o.a resp t.o.v zgn
""".split()
)


def sentence_starts(text: str) -> list[int]:
    """Returns the offsets of the beginnings of sentences, ascending from 0; an empty list for an empty text."""
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
    if _ORDINAL.search(text[max(0, match.start() - 3) : match.start()]) and _COUNTED.match(text, match.end()):
        return False
    word = _LAST_WORD.search(text[max(0, match.start() - 24) : match.start()])
    before = word.group() if word else ""
    initial = len(before) == 1 and before.isalpha() and before.isupper() and before != "I"
    return not initial and before.casefold() not in _ABBREVIATIONS
