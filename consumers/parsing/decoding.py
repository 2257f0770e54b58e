"""Decodes bytes: by byte order mark, as UTF-8, as UTF-16 without a mark, or in the code page that fits every byte."""

import codecs
import encodings.aliases
import re
import unicodedata
from collections.abc import Sequence
from itertools import repeat

from consumers.parsing.limits import WrongKind

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark equals the first half of this mark
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 1 << 16
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_COMMON = re.compile(r"[ \t\n\r,.。，、]")
_STRANGE = frozenset(("Cc", "Cn", "Co", "Cs"))
"""Unicode categories that do not occur in texts: control, unassigned, private use, surrogate."""
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
_NO_CHARACTER = re.compile("[\ud800-\udfff\ufffe\uffff]")
_LINE_BEYOND_ASCII = re.compile(rb"[^\n\x80-\xff]*[\x80-\xff][^\n]*")
_RUN_BEYOND_ASCII = re.compile(rb"[\x80-\xff]+")
_WITHIN_WORD = re.compile(r"(?<=[^\W\d_])[^\x00-\x7f](?=[^\W\d_])")
_HIRAGANA = re.compile("[\u3041-\u309f]")
_VALID_PER_DAMAGED = 2
"""Minimum ratio of valid to damaged non-ASCII characters for UTF-8. In other encodings, about one such character in ten is
valid UTF-8 by chance."""
MAX_CHARACTER_BYTES = 4
"""Maximum number of bytes of one character in any supported encoding."""
_MAX_STRAY_ZEROS = 0.2
_CODE_PAGES = """
    cp1252 cp1250 cp1251 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 gb18030 cp932 cp949 big5 euc_jp koi8_r koi8_u iso8859_2
    iso8859_5 iso8859_7 iso8859_15 cp850 cp437 cp852 cp866 mac_roman mac_cyrillic cp874
""".split()
"""Code pages that occur in users' files, the most frequent first."""
_MULTI_BYTE = frozenset(("gb18030", "cp932", "cp949", "big5", "euc_jp"))
_TEXT_ENCODINGS = frozenset(encodings.aliases.aliases.values()) - {"rot_13"}
_ASCII_BYTES = frozenset(name for name in _TEXT_ENCODINGS if name.startswith("iso2022")) | {"utf-7", "hz"}
"""Encodings that represent every character by ASCII bytes."""
_LATIN = "cp1252 cp1250 cp1254 cp1257 cp1258 iso8859_2 iso8859_15 cp850 cp437 cp852 mac_roman".split()
_JAPANESE = ("euc_jp", "cp932")
_NEAR, _NEAR_COHERENCE = 0.05, 0.03
"""Two code pages count as equally plausible if charset-normalizer's chaos and coherence differ by less."""
_MAX_CHAOS = 0.4
_EXCERPT = 4096
_MAX_LINE_BYTES = 1024
_NEVER_WITHIN_A_CHARACTER = (b" ", b"\t", b",", b".", b'"', b">")
"""Bytes that are not part of a multi-byte character in any of the encodings."""
_BINARY = "binary, not text in any encoding that is known; exclude it, or convert it into a document"


def decode(data: bytes, declared: str = "") -> str:
    """Decodes bytes to text with `\\n` line ends and no control characters. Raises NotADocument if the bytes are not text.

    `declared` is the encoding that a message or page states. This encoding is used only if it decodes all bytes. Bytes that are
    valid UTF-8 are decoded as UTF-8, unless the declared encoding uses ASCII bytes only.
    """
    return clean_text(_decoded(data, _known_encoding(declared)))


def refuse_binary(data: bytes) -> None:
    """Raises NotADocument if the bytes are not text. Called for formats whose parsers decode bytes themselves."""
    sample = data[:_SAMPLE]
    marked = any(data.startswith(mark) for mark, _ in _MARKS)
    if not marked and not _utf16_order(sample) and _looks_binary(sample):
        raise WrongKind(_BINARY)


def clean_text(text: str) -> str:
    """Normalises line ends; replaces control characters by spaces, and surrogates and non-characters by U+FFFD."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0b", "\n")
    return _NO_CHARACTER.sub("\ufffd", _CONTROLS.sub(" ", text))


def _decoded(data: bytes, declared: str) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    sample = data[:_SAMPLE]
    if order := _utf16_order(sample):
        return data.decode(order, "replace")
    if _looks_binary(sample):
        raise WrongKind(_BINARY)
    if declared in _ASCII_BYTES and _decodes(data, declared):
        return data.decode(declared)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode(declared) if declared and _decodes(data, declared) else _legacy(data)


def _known_encoding(declared: str) -> str:
    """Returns Python's name of a text encoding; "" if it is unknown. ISO 8859-1 means Windows-1252, as in browsers. ASCII gives
    "", because programs declare it by default."""
    try:
        name = codecs.lookup(declared).name if declared else ""
    except (LookupError, ValueError):
        return ""
    if name == "iso8859-1":
        return "cp1252"
    return name if name != "ascii" and name.replace("-", "_") in _TEXT_ENCODINGS else ""


def _utf16_order(sample: bytes) -> str | None:
    """Returns the byte order of UTF-16 without a mark, or None if the sample is not UTF-16.

    Text in UTF-16 contains zero bytes. Decoded in the right byte order, it has many spaces and common punctuation
    marks.
    """
    if 0 not in sample or len(sample) < 4 or _has_stray_zeros(sample):
        return None
    found = []
    for encoding in ("utf-16-le", "utf-16-be"):
        text = sample[: len(sample) // 2 * 2].decode(encoding, "replace")
        strange = sum(1 for char in text if unicodedata.category(char) in _STRANGE and char not in "\t\n\r\f")
        found.append((len(_COMMON.findall(text)) if strange * 50 < len(text) else 0, encoding))
    common, encoding = max(found)
    return encoding if common * 100 > len(sample) // 2 else None


def _looks_binary(sample: bytes) -> bool:
    if 0 in sample:
        return not _has_stray_zeros(sample)
    return len(_CONTROL.findall(sample.decode("latin-1"))) * 20 > len(sample)


def _has_stray_zeros(sample: bytes) -> bool:
    """Whether the sample is UTF-8 with a few stray zero bytes, which some exports contain.

    In UTF-16, there are more zero bytes, or the other bytes are not text.
    """
    rest = sample.replace(b"\0", b"")
    if len(sample) - len(rest) > _MAX_STRAY_ZEROS * len(sample) or _looks_binary(rest):
        return False
    lenient = rest.decode("utf-8", "replace")
    return "\ufffd" not in lenient[:-MAX_CHARACTER_BYTES]


def _legacy(data: bytes) -> str:
    """Decodes text that is not valid UTF-8.

    If most multi-byte characters are valid UTF-8, the text counts as damaged UTF-8, and damaged bytes become U+FFFD. Otherwise
    the most plausible code page that decodes every byte is used.
    """
    lenient = data.decode("utf-8", "replace")
    damaged = lenient.count("\ufffd")
    beyond_ascii = len(lenient) - len(lenient.encode("ascii", "ignore"))
    if beyond_ascii - damaged >= _VALID_PER_DAMAGED * damaged:
        return lenient
    encoding = _best_code_page(data)
    if encoding is not None:
        return data.decode(encoding)
    if damaged * 10 > len(lenient):
        raise WrongKind(_BINARY)
    return data.decode("cp1252", "replace")


def _best_code_page(data: bytes) -> str | None:
    """Returns the most plausible code page in `_CODE_PAGES` that decodes all of `data`; None if no code page yields
    text."""
    distinct = bytes(set(data))
    pages = _LATIN if _is_latin(data) else _CODE_PAGES
    possible = [name for name in pages if _decodes(data if name in _MULTI_BYTE else distinct, name)]
    excerpt = _excerpt(data, possible)
    if pages is _LATIN:
        excerpt = excerpt.replace(b"\xad", b"")  # a soft hyphen, which charset-normalizer counts as noise
    if not possible or not excerpt:
        return None
    from charset_normalizer import from_bytes  # the import takes 20 ms, and few files need it

    matches = from_bytes(
        excerpt, steps=1, chunk_size=len(excerpt), threshold=_MAX_CHAOS, cp_isolation=possible, enable_fallback=False
    )
    found = [
        (match.chaos, match.coherence, name, str(match)) for match in matches for name in match.could_be_from_charset
    ]
    if not found:  # too few letters to judge
        return "cp1252" if pages is _LATIN and "cp1252" in possible else None
    lowest_chaos = min(chaos for chaos, *_ in found)
    # Japanese in EUC-JP resembles Korean with rare syllables. Many Hiragana characters indicate Japanese.
    for chaos, _, name, text in found:
        if name in _JAPANESE and chaos <= lowest_chaos + _NEAR and len(_HIRAGANA.findall(text)) * 10 > len(text):
            return name
    # Among code pages with about equal chaos, prefer the more common one. Coherence (how well the letters' frequencies
    # fit a language) decides only if it differs clearly, because code pages differ in few letters.
    equal = [
        (_signs_within_words(text), coherence, name)
        for chaos, coherence, name, text in found
        if chaos <= lowest_chaos + (2 * _NEAR if name == "cp1252" else 0)
    ]
    fewest = min(signs for signs, *_ in equal)
    best = max(coherence for signs, coherence, _ in equal if signs == fewest)
    return min(
        (name for signs, coherence, name in equal if signs == fewest and coherence >= best - _NEAR_COHERENCE),
        key=_CODE_PAGES.index,
    )


def _signs_within_words(text: str) -> int:
    """Returns the number of signs beyond ASCII between two letters. A wrong code page causes such signs: "m³hle" for
    "mühle"."""
    return sum(unicodedata.category(sign)[0] not in "LMP" for sign in _WITHIN_WORD.findall(text))


def _is_latin(data: bytes) -> bool:
    """Whether bytes beyond ASCII occur singly or in pairs, as accented letters do. In non-Latin scripts they form longer
    runs."""
    runs = list(map(len, _RUN_BEYOND_ASCII.findall(data)))
    return 3 * sum(run for run in runs if run > 2) < sum(runs)


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _excerpt(data: bytes, possible: Sequence[str]) -> bytes:
    """Returns sample lines with bytes beyond ASCII from the whole text. A long line is cut between two characters."""
    lines, left = [], _EXCERPT
    for match in _LINE_BEYOND_ASCII.finditer(data):
        line = match[0]
        if len(line) > _MAX_LINE_BYTES:
            end = max(map(line.rfind, _NEVER_WITHIN_A_CHARACTER, repeat(0), repeat(_MAX_LINE_BYTES)))
            if end <= 0:
                cuts = range(_MAX_LINE_BYTES - 3, _MAX_LINE_BYTES + 1)
                end = max(cuts, key=lambda cut: sum(_decodes(line[:cut], name) for name in possible))
            line = line[:end]
        if line not in lines:
            lines.append(line)
            left -= len(line)
        if left <= 0:
            break
    return b"\n".join(lines)
