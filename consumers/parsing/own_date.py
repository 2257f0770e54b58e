"""Finds the date of a document in its metadata."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

KEYS = ("published_at", "published", "pubdate", "publish_date", "date", "created", "creation-date", "modified")
"""Metadata keys in lower case, in order of preference: date of publication or sending, of creation, of the last
change."""

EARLIEST_YEAR, LATEST_YEAR = 1000, 2999
"""Dates outside these years are ignored: programs write years such as 101 for an unknown date."""

_PDF = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:(Z)|([+-]\d\d)'?(\d\d)?'?)?")
"""PDF 32000-1, 7.9.4: `D:YYYYMMDDHHmmSSOHH'mm'`."""
_MONTH = re.compile(r"(\d{4})(?:-(\d\d))?")
_SPACED_ZONE = re.compile(r"(?<=\d) +(?=[+-]\d\d:?\d\d$)")


def published_at(metadata: Mapping[str, Any]) -> str | None:
    """Returns the first valid date as ISO 8601 with a time zone (UTC if the date has none), or None."""
    by_key = {key.lower(): value for key, value in metadata.items()}
    for key in KEYS:
        value = by_key.get(key)
        if isinstance(value, str) and (found := read_date(value)) is not None:
            return found.isoformat()
    return None


def read_date(text: str) -> datetime | None:
    """Parses a date in the format of ISO 8601 (or only a year or month), PDF or e-mail (RFC 5322). None if it is invalid."""
    text = text.strip()[:100]
    for read in (_iso, _pdf, parsedate_to_datetime):
        try:
            found = read(text)
        except (ValueError, OverflowError, TypeError, IndexError):
            continue
        if found is not None and EARLIEST_YEAR <= found.year <= LATEST_YEAR:
            return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return None


def _iso(text: str) -> datetime | None:
    if month := _MONTH.fullmatch(text):
        return datetime(int(month[1]), int(month[2] or 1), 1, tzinfo=UTC)
    return datetime.fromisoformat(_SPACED_ZONE.sub("", text))


def _pdf(text: str) -> datetime | None:
    match = _PDF.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (
        match[i] or default for i, default in zip(range(1, 7), "011000", strict=True)
    )
    zone = f"{match[8]}:{match[9] or '00'}" if match[8] else "+00:00"
    return datetime.fromisoformat(
        f"{year}-{int(month):02}-{int(day):02}T{int(hour):02}:{int(minute):02}:{int(second):02}{zone}"
    )
