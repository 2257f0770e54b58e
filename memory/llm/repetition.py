"""Detects an answer that ends in a repetition, which models, small ones above all, continue until the length limit."""

REPETITION_CHARS = 1200
"""Length of the repetition at the end of the text. Shorter ones occur in useful answers."""
MAX_PERIOD_CHARS = 400
_PROBE_CHARS = 40


def ends_in_repetition(text: str) -> bool:
    """Whether the text ends with one piece of at most `MAX_PERIOD_CHARS`, over and over."""
    tail = text[-REPETITION_CHARS:]
    if len(tail) < REPETITION_CHARS:
        return False
    at = tail.rfind(tail[-_PROBE_CHARS:], 0, -1)
    period = len(tail) - _PROBE_CHARS - at
    return at >= 0 and period <= MAX_PERIOD_CHARS and tail[period:] == tail[:-period]
