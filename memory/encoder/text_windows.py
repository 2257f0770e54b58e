"""Windows of a text that is longer than its model's maximum. Together they are the whole text.

The text's vector is the mean of its windows' vectors, weighted by their numbers of tokens
(docs/decisions/0005-passages-longer-than-the-encoder-reads.md).
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from memory.types import Matrix

SLACK = 0.25
"""Share of a window by which it may be shorter in order to end between two words."""

Span = tuple[int, int]
"""Offsets of a token in its text: the first character, and the first one after it."""


def text_windows(text: str, spans: Sequence[Span], room: int) -> list[str]:
    """Returns windows of `text` of nearly equal length, with at most `room` tokens each; `[text]` if it has no more tokens.

    `spans`: those of the text's tokens, in order. A window ends before a word if there is a word near its end.
    """
    if len(spans) <= room:
        return [text]
    starts = [0, *_starts(text, spans, room), len(text)]
    return [text[start:end] for start, end in pairwise(starts)]


def _starts(text: str, spans: Sequence[Span], room: int) -> Iterator[int]:
    """Yields the first characters of all windows except the first."""
    at = 0
    while len(spans) - at > room:
        left = len(spans) - at
        wanted = -(-left // -(-left // room))
        end, shortest = at + wanted, at + max(1, math.ceil(wanted * (1 - SLACK)))
        while end > shortest and not _begins_word(text, spans[end]):
            end -= 1
        if not _begins_word(text, spans[end]):
            end = at + wanted
        yield spans[end][0]
        at = end


def _begins_word(text: str, span: Span) -> bool:
    start = span[0]
    return text[start : start + 1].isspace() or text[start - 1 : start].isspace()


def pooled(vectors: Matrix, counts: Sequence[Sequence[int]]) -> Matrix:
    """Returns the vector of each text, of length one; zero for a text without windows.

    `vectors`: those of all windows, text by text. `counts`: the numbers of tokens of each text's windows.
    """
    of_texts = np.zeros((len(counts), vectors.shape[1]), np.float32)
    at = 0
    for row, each in enumerate(counts):
        if len(each) == 1:
            of_texts[row] = vectors[at]
        elif each:
            mean = np.array(each, np.float32) @ vectors[at : at + len(each)]
            of_texts[row] = mean / np.linalg.norm(mean)
        at += len(each)
    return of_texts
