"""Parses the headers about a server's rate limit: `Retry-After`, `retry-after-ms`, and OpenAI's `x-ratelimit-*`."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

MAX_WAIT_S = 3600.0
"""A longer wait is treated as an error of the server."""
_PARTS = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class RateLimit:
    """`remaining` is the number of calls that the server accepts within the next `reset_s` seconds."""

    remaining: int
    reset_s: float


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds after which a refused call may be repeated; None if no header gives them."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        seconds = _number(value)
        if seconds is None and name == "retry-after":
            seconds = _until(value)
        elif seconds is not None:
            seconds *= unit
        if seconds is not None and 0 <= seconds <= MAX_WAIT_S:
            return seconds
    limit = rate_limit_of(headers)
    return limit.reset_s if limit is not None and limit.remaining == 0 else None


def rate_limit_of(headers: Mapping[str, str]) -> RateLimit | None:
    """Returns the tighter of the two limits, of requests and of tokens; None if the headers have no valid limit."""
    found = []
    for what in ("requests", "tokens"):
        remaining = _number(headers.get(f"x-ratelimit-remaining-{what}", ""))
        reset_s = duration_s(headers.get(f"x-ratelimit-reset-{what}", ""))
        if remaining is not None and reset_s is not None and 0 <= reset_s <= MAX_WAIT_S:
            # The number of calls that the remaining tokens allow is unknown, unless no tokens are left.
            found.append(RateLimit(int(remaining) if what == "requests" or remaining <= 0 else 1 << 30, reset_s))
    return min(found, key=lambda limit: (limit.remaining, -limit.reset_s), default=None)


def duration_s(text: str) -> float | None:
    """Parses "1s", "6m0s", "20ms" or "1.5" as seconds; returns None for any other text."""
    if (seconds := _number(text)) is not None:
        return seconds
    parts = _PARTS.findall(text.strip())
    if not parts or "".join(map("".join, parts)) != text.strip():
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _number(text: str) -> float | None:
    try:
        return float(text) if re.fullmatch(r"\s*\d+(\.\d+)?\s*", text, re.ASCII) else None
    except ValueError:
        return None


def _until(date: str) -> float | None:
    """Returns the seconds until an HTTP date; 0 for a past date."""
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
