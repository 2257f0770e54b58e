"""Detects an answer that ends in a repetition. Models, above all small ones, repeat a text until the length limit."""

REPETITION_CHARS = 1200
"""Minimum number of characters of a repetition at the end of the text. Shorter repetitions occur in useful answers."""
MAX_PERIOD_CHARS = 400
_PROBE_CHARS = 40


def ends_in_repetition(text: str) -> bool:
    """Whether the text ends with repetitions of one piece of at most `MAX_PERIOD_CHARS`."""
    return _period(text) > 0


def without_repetition(text: str) -> str:
    """Returns the text with the repetition at its end reduced to one piece."""
    if (period := _period(text)) == 0:
        return text
    end = len(text) - REPETITION_CHARS
    while end > 0 and text[end - 1] == text[end - 1 + period]:
        end -= 1
    return text[: end + period]


def _period(text: str) -> int:
    """Returns the length of the piece that is repeated at the text's end; 0 without a repetition."""
    tail = text[-REPETITION_CHARS:]
    if len(tail) < REPETITION_CHARS:
        return 0
    at = tail.rfind(tail[-_PROBE_CHARS:], 0, -1)
    period = len(tail) - _PROBE_CHARS - at
    return period if at >= 0 and period <= MAX_PERIOD_CHARS and tail[period:] == tail[:-period] else 0
