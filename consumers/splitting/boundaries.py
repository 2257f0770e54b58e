"""Splits a section that is too long for one passage. Whether a gap becomes a boundary depends only on the content around it.

Every gap between two units (paragraphs, lines, sentences, runs of words) has a rank: first the kind of the gap, then a hash of
the text after it. A gap is a boundary if no gap within `reach` tokens on either side has a higher rank. So an edit cannot move
boundaries that are farther away than `reach`. A stretch in which ranks only rise or only fall may still be too long. Such a
stretch is split from its beginning.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Unit(NamedTuple):
    """An indivisible piece of text, `block[start:end]`. `level` and `key` are the rank of the gap before the unit."""

    block: int
    start: int
    end: int
    tokens: int
    level: int
    key: int


def cut_section(units: Sequence[Unit], max_tokens: int, min_tokens: int) -> list[tuple[int, int]]:
    """Divides `units` into consecutive ranges of at most `max_tokens`, given as (first, index after the last). No unit may be
    longer."""
    ends = [0]
    for unit in units:
        ends.append(ends[-1] + unit.tokens)
    if ends[-1] <= max_tokens:
        return [(0, len(units))]
    # A fifth of the limit gives passages of 0.4 times the limit on average, and leaves few stretches to `_walk`, whose
    # boundaries depend on more than the content around them.
    reach = max(max_tokens // 5, min_tokens, 1)
    ranges: list[tuple[int, int]] = []
    first = 0
    for last in [*_peaks(units, ends, reach), len(units)]:
        ranges.extend(_walk(units, ends, first, last, max_tokens, reach))
        first = last
    return ranges


def _peaks(units: Sequence[Unit], ends: Sequence[int], reach: int) -> list[int]:
    """Returns the indices of units whose preceding gap has the highest rank within `reach` tokens. Takes one pass with
    a monotonic stack."""
    count, total = len(units), ends[-1]
    left = [0] * count
    right = [total] * count
    stack: list[int] = []
    for index in range(1, count):
        rank = units[index][4:]
        while stack and units[stack[-1]][4:] < rank:
            right[stack.pop()] = ends[index]
        left[index] = ends[stack[-1]] if stack else 0
        stack.append(index)
    return [i for i in range(1, count) if ends[i] - left[i] > reach and right[i] - ends[i] > reach]


def _walk(
    units: Sequence[Unit], ends: Sequence[int], first: int, last: int, max_tokens: int, reach: int
) -> list[tuple[int, int]]:
    """Splits a stretch without peaks, from its beginning. Splits at the highest-ranked gap that leaves no piece shorter than
    `reach`, or else at the highest-ranked gap."""
    ranges = []
    while ends[last] - ends[first] > max_tokens:
        begin, end = ends[first], ends[last]
        allowed = []
        index = first + 1
        while index < last and ends[index] - begin <= max_tokens:
            allowed.append(index)
            index += 1
        roomy = [i for i in allowed if ends[i] - begin >= reach and end - ends[i] >= reach]
        chosen = max(roomy or allowed, key=lambda i: units[i][4:])
        ranges.append((first, chosen))
        first = chosen
    ranges.append((first, last))
    return ranges
