"""Detects the language of a text with Compact Language Detector 2, which uses letter 4-grams, knows 83 languages, and takes a
few microseconds per kilobyte.

For seven languages with Latin letters, the number of their function words in the text may override CLD2. For texts of 100
characters, this increases the share of correct results from .849 to .907 (docs/explanation/benchmarks.md, "Languages"), because
CLD2 takes sentences that contain English names for English. The result depends only on the text. A short or mixed text may get
a wrong language or none; callers must tolerate this.
"""

import re
from itertools import chain
from unicodedata import normalize

import pycld2

DETECTED_CHARS = 4_000
"""Number of characters of a text, from its beginning, that are examined. No passage is longer; this bounds the cost of huge
texts."""

# Characters that the detector refuses: control characters and lone surrogates.
_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_KANA = re.compile("[\u3041-\u30fa]")
_HAN = re.compile("[\u3400-\u9fff]")


def detect_language(text: str) -> str:
    """Returns the ISO 639 code of the main language of `text` (for example "de" or "zh"); "" if it is unknown."""
    # PDF files and macOS encode letters and accents as separate characters. Separate accents give other 4-grams, with which
    # CLD2 mistakes French for Portuguese.
    clean = _REFUSED.sub(" ", normalize("NFC", text[:DETECTED_CHARS]))
    try:
        _, _, found = pycld2.detect(clean, isPlainText=True, bestEffort=True)
    except pycld2.error:  # raised if the detector finds no text
        found = ()
    code = found[0][1] if found else "un"
    if code in ("un", "xxx", "ja") and _HAN.search(clean):
        # Every Japanese sentence contains kana.
        code = "ja" if _KANA.search(clean) else "zh"
    return _outvoted(clean, _ALIASES.get(code, "" if code.startswith(("un", "xx")) else code))


FUNCTION_WORDS = {
    code: frozenset(text.split())
    for code, text in {
        "en": "the of and to is in that it for was with as on by are be this from at or an which not has have were "
        "their its his",
        "de": "der die das und ist ein eine von zu den mit nicht sich auf für dem des im werden wird auch als bei "
        "oder sind aus einen wie nach war wurde",
        "fr": "le la les de des et est un une du en que qui dans pour par sur pas au ce il avec sont plus ne se ou "
        "vous cette être été quand",
        "es": "el la los las de del y en que es un una por con para se no al su lo como más o son este está fue sus "
        "entre",
        "it": "il la di e che è un una per in del con non si da le della i gli al sono nel dei come più o alla dal "
        "anche questo fu",
        "pt": "o a os as de do da e em que é um uma para com não no na se por dos das ao mais como ou foi são pode "
        "ser seu",
        "nl": "de het een van en in is dat op te voor met zijn niet aan er die om door als bij ook naar wordt uit "
        "worden of dit werd kan",
    }.items()
}
"""The most common words of languages that are often confused."""
_LANGUAGES_OF = {
    word: [code for code, known in FUNCTION_WORDS.items() if word in known] for word in chain(*FUNCTION_WORDS.values())
}
"""The languages to which each function word belongs."""
_LATIN_RELATIVES = frozenset(
    ["af", "ca", "ceb", "da", "gl", "id", "la", "lb", "ms", "no", "oc", "ro", "so", "sv", "sw", "tl", "war"]
)
"""Other languages that CLD2 may report for a few words in one of the languages of `FUNCTION_WORDS`."""
_WORD = re.compile(r"[^\W\d_]+")
_FEWEST, _SHARE, _LEAD = 2, 8, 1.5
"""Function words of a language override CLD2 if the text contains at least `_FEWEST` of them, at least one per `_SHARE` words,
and more than `_LEAD` times as many as function words of the language that CLD2 reports."""


def _outvoted(text: str, code: str) -> str:
    if code and code not in FUNCTION_WORDS and code not in _LATIN_RELATIVES:
        return code
    words = [word.lower() for word in _WORD.findall(text)]
    counts = dict.fromkeys(FUNCTION_WORDS, 0)
    for word in filter(_LANGUAGES_OF.__contains__, words):
        for each in _LANGUAGES_OF[word]:
            counts[each] += 1
    best = max(counts, key=counts.__getitem__)
    enough = counts[best] >= max(_FEWEST, _LEAD * counts.get(code, 0) + 1) and counts[best] * _SHARE >= len(words)
    return best if enough else code


_ALIASES = {"zh-Hant": "zh", "iw": "he", "nn": "no", "nb": "no"}
