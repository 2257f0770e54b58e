"""Where a section too long for one passage is cut, decided by the content around each place and by nothing else.

Every gap between two units (paragraphs, lines, sentences, runs of words) has a rank: first the kind of gap, then a hash of
what begins there. A gap is a boundary when no gap within `reach` tokens on either side outranks it. As that looks at
the neighbourhood alone, an edit cannot move boundaries farther away than `reach`: everything beyond stays as it was.
What is still too long after that (gaps whose ranks only rise or fall over a long way) is cut from its own beginning.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Unit(NamedTuple):
    """A piece that is not cut any more: `block[start:end]`. `level` and `key` rank the gap before it."""

    block: int
    start: int
    end: int
    tokens: int
    level: int
    key: int


def cut_section(units: Sequence[Unit], max_tokens: int, min_tokens: int) -> list[tuple[int, int]]:
    """Ranges of `units`, in order and without holes, of at most `max_tokens` each (no unit is longer than that)."""
    ends = [0]
    for unit in units:
        ends.append(ends[-1] + unit.tokens)
    if ends[-1] <= max_tokens:
        return [(0, len(units))]
    # A fifth of the limit: passages of 0.4 of it on average, so that few stretches are left over for `_walk`, whose cuts
    # depend on more than their neighbourhood.
    reach = max(max_tokens // 5, min_tokens, 1)
    ranges: list[tuple[int, int]] = []
    first = 0
    for last in [*_peaks(units, ends, reach), len(units)]:
        ranges.extend(_walk(units, ends, first, last, max_tokens, reach))
        first = last
    return ranges


def _peaks(units: Sequence[Unit], ends: Sequence[int], reach: int) -> list[int]:
    """Indices of the units before which there is a gap that nothing within `reach` tokens outranks. One pass, a stack."""
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
    """Cut a stretch without peaks from its beginning on: each time at the highest gap that leaves no crumbs."""
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
