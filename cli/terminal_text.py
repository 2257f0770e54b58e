"""Safe display of documents' text, and quantities for people.

Documents, file names and model answers are not trusted: they must neither control a terminal nor hide text.
"""

import json
import re
from datetime import datetime

from cli.document_names import readable_uri

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline, both sets
    # invisible, or changing the text direction
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # invisible: controls of shorthand and of music
    "\ud800-\udfff"  # surrogates, from names that are not UTF-8
    "\U000e0000-\U000e007f]"  # tags, which are invisible
)
_SPACE = re.compile(r"\s+")
_INVISIBLE = frozenset("\u00ad\u061c\u180e\u200b\u200e\u200f\u2060\ufeff\r")


def terminal_safe(text: str) -> str:
    """Returns `text` without characters that control a terminal. Escapes characters that could act (`\\x1b`), drops harmless
    ones."""
    return _UNSAFE.sub(lambda match: _shown(match[0]), text)


def json_safe(line: str) -> str:
    """Returns JSON in which the characters that `terminal_safe` replaces are escaped; the content is unchanged.

    Line feeds between JSON lines stay.
    """
    return _UNSAFE.sub(
        lambda match: json.dumps(match[0])[1:-1] if match[0] > "\x7f" else f"\\u{ord(match[0]):04x}", line
    )


def xml_safe(text: str) -> str:
    """Returns XML in which the characters that `terminal_safe` replaces are character references; the content is unchanged."""
    return _UNSAFE.sub(lambda match: f"&#x{ord(match[0]):x};", text)


def one_line(text: str) -> str:
    """Returns `terminal_safe` text with each run of white space replaced by one space."""
    return _SPACE.sub(" ", terminal_safe(text)).strip()


def _shown(character: str) -> str:
    if character in _INVISIBLE:
        return ""
    if character in "\u2028\u2029":
        return "\n"
    return character.encode("unicode_escape").decode("ascii")


def truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(0, limit - 1)].rstrip() + "…"


def uri(value: str) -> str:
    """Returns a document's readable URI in one line. Typed again, it denotes the document."""
    return one_line(readable_uri(value))


def count(number: int, one: str = "", many: str | None = None) -> str:
    """Formats a count, for example "1,234 documents"."""
    word = one if number == 1 else (many or f"{one}s")
    return f"{number:,} {word}" if one else f"{number:,}"


def size(amount: float) -> str:
    """Formats bytes in binary units."""
    for unit in ("B", "KiB", "MiB"):
        if abs(amount) < 1024:
            return f"{amount:.0f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def duration(seconds: float) -> str:
    """Formats seconds in the two largest units."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def milliseconds(value: float) -> str:
    """Formats milliseconds, with more digits for smaller values."""
    return f"{value:.1f} ms" if value < 100 else f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:.1f} s"


def local_time(moment: datetime | str | None, shape: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Formats a moment in this machine's time zone. Raises ValueError if `moment` is a text but not a time in ISO 8601."""
    if moment is None:
        return ""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    try:
        return moment.astimezone().strftime(shape)
    except (OverflowError, ValueError):  # near the limits of datetime, in a zone that exceeds them
        return moment.strftime(shape)


def location_text(location: dict[str, object], title: str = "") -> str:
    """Formats a passage's place in its document: page 3, “Heating”, line 12. Omits a heading that already ends the title."""
    parts = []
    for key, value in location.items():
        if value in (None, "", [], {}):
            continue
        place = one_line(" › ".join(map(str, value)) if isinstance(value, list) else str(value))
        if key == "heading" and one_line(title).endswith(place):
            continue
        parts.append(f"“{place}”" if key == "heading" else f"{one_line(key)} {place}")
    return ", ".join(sorted(parts, key=_place_order))


def _place_order(part: str) -> int:
    order = ("page", "sheet", "“", "line", "row", "time")
    return next((at for at, prefix in enumerate(order) if part.startswith(prefix)), len(order))
