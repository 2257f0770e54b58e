"""From bytes to text: by byte order mark, as UTF-8, as UTF-16 without a mark, then by guessing."""

import codecs
import re
import unicodedata

from consumers.failure_codes import FailureCode
from consumers.parsing.limits import NotADocument

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 1 << 16
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_COMMON = re.compile(r"[ \t\n\r,.。，、]")
_STRANGE = frozenset(("Cc", "Cn", "Co", "Cs"))
"""Categories of characters that texts do not hold: controls, unassigned, private, halves of pairs."""
_UNWANTED = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_BINARY = "binary, not text in any encoding that is known; exclude it, or convert it into a document"


def decode(data: bytes) -> str:
    """The text with `\\n` line ends and without control characters. Raises NotADocument for what is no text."""
    return clean_text(_decoded(data))


def refuse_binary(data: bytes) -> None:
    """Raises NotADocument for bytes that no encoding makes a text of; for formats whose parser reads bytes by itself."""
    sample = data[:_SAMPLE]
    marked = any(data.startswith(mark) for mark, _ in _MARKS)
    if not marked and not _utf16_order(sample) and _looks_binary(sample):
        raise NotADocument(_BINARY, FailureCode.NOT_A_DOCUMENT)


def clean_text(text: str) -> str:
    """One kind of line end; control characters and halves of surrogate pairs become U+FFFD, which every store accepts."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNWANTED.sub("\ufffd", text)


def _decoded(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    sample = data[:_SAMPLE]
    if order := _utf16_order(sample):
        return data.decode(order, "replace")
    if _looks_binary(sample):
        raise NotADocument(_BINARY, FailureCode.NOT_A_DOCUMENT)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return _guessed(data)


def _utf16_order(sample: bytes) -> str | None:
    """UTF-16 without a mark: there are zero bytes, and in one of the two byte orders they make blanks and common marks."""
    if 0 not in sample or len(sample) < 4:
        return None
    found = []
    for encoding in ("utf-16-le", "utf-16-be"):
        text = sample[: len(sample) // 2 * 2].decode(encoding, "replace")
        strange = sum(1 for char in text if unicodedata.category(char) in _STRANGE and char not in "\t\n\r\f")
        found.append((len(_COMMON.findall(text)) if strange * 50 < len(text) else 0, encoding))
    common, encoding = max(found)
    return encoding if common * 100 > len(sample) // 2 else None


def _looks_binary(sample: bytes) -> bool:
    return 0 in sample or len(_CONTROL.findall(sample.decode("latin-1"))) * 20 > len(sample)


def _guessed(data: bytes) -> str:
    lenient = data.decode("utf-8", "replace")
    bad = lenient.count("\ufffd")
    beyond_ascii = sum(1 for char in lenient[:_SAMPLE] if char > "\x7f" and char != "\ufffd")
    if bad * 10 < beyond_ascii or (bad <= 3 and not beyond_ascii):
        return lenient  # UTF-8 with some damage
    from charset_normalizer import from_bytes  # 20 ms of import that few files need

    matches = from_bytes(data[:_SAMPLE])
    best = matches.best()
    if best is None:
        if bad * 10 > len(lenient):
            raise NotADocument(_BINARY, FailureCode.NOT_A_DOCUMENT)
        return lenient
    for match in matches:  # between code pages that fit alike, the one that is by far the most common
        if match.encoding == "cp1252" and (match.chaos, -match.coherence) <= (best.chaos, -best.coherence):
            best = match
    return data.decode(best.encoding, "replace")
