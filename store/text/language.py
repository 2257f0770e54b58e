"""The language of a text, by Compact Language Detector 2: 4-grams of letters, 83 languages, a few microseconds a kilobyte.

It depends on the text alone. A short or mixed text may get the wrong language or none; whoever asks must do with that.
"""

import re

import pycld2

DETECTED_CHARS = 4_000
"""Of a text, from its beginning: more than a passage has, so that a huge one costs no more."""

# What the detector refuses: control characters and lone surrogates.
_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_KANA = re.compile("[\u3041-\u30fa]")
_HAN = re.compile("[\u3400-\u9fff]")


def detect_language(text: str) -> str:
    """The ISO 639 code of the language that most of `text` is in ("de", "zh"), "" where that cannot be told."""
    clean = _REFUSED.sub(" ", text[:DETECTED_CHARS])
    try:
        _, _, found = pycld2.detect(clean, isPlainText=True, bestEffort=True)
    except pycld2.error:  # what it takes for no text at all
        found = ()
    code = found[0][1] if found else "un"
    if code in ("un", "xxx") and _HAN.search(clean):
        code = "ja" if _KANA.search(clean) else "zh"
    return _ALIASES.get(code, "" if code.startswith(("un", "xx")) else code)


_ALIASES = {"zh-Hant": "zh", "iw": "he", "nn": "no", "nb": "no"}
