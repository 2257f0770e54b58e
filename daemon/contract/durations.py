"""Durations as people write them, in the configuration and on the command line."""

import re

ALLOWED = 'a time such as "15m", "1h30m", "2d", or a number of seconds'
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float:
    """Parses numbers with units (ms, s, m, min, h, d); returns seconds. Raises ValueError, also for a number without a unit."""
    text = text.strip().lower()
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip():
        raise ValueError(ALLOWED)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def duration_text(seconds: float) -> str:
    """Formats seconds as a duration, for example 5400.0 as "90m". `parse_duration` returns the same seconds."""
    for unit in ("d", "h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{int(seconds / _SECONDS[unit])}{unit}"
    return f"{seconds:.15g}s" if "e" not in f"{seconds:.15g}" else f"{seconds:.9f}s"
