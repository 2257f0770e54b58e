"""Codes of four bits per component, in memory, to find the rows near a query: TurboQuant, by the library turbovec.

The one-byte codes of ten million rows take 3.8 GB; one processor needs more than a tenth of a second to read them. A group
contains the codes of `MIN_GROUP_ROWS` to `MAX_GROUP_ROWS` consecutive rows. A group never changes once it is made, so queries
and commits do not wait for each other. Two small adjacent groups are merged, because searching a group has a fixed cost of a
third of a millisecond. Fewer than `MIN_GROUP_ROWS` rows remain after the last group. `docs/decisions/0004-four-bit-codes.md`
compares libraries.

A row's four-bit code depends only on its one-byte code, because rotation and codebook depend only on the number of dimensions,
and nothing is trained. The order of arrival and restarts therefore do not change scores.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.file_arrays import drop_first
from store.index.parallel import in_background
from store.index.vectors.codes import CODED_ROWS, CodedBlock

MIN_GROUP_ROWS = 32_768
MAX_GROUP_ROWS = 1_048_576
"""The number of a group's rows is a power of two; a group's codes have 6 to 201 MB at 384 dimensions."""
GROUP_BITS = 4
SCORE_DEVIATION = 0.1
"""Standard deviation of the error of a score, multiplied by sqrt(dim), for unit vectors.

Measured at 384 dimensions: a standard deviation of 0.005, and a maximum error of 0.029 among 800,000 scores.
"""
UNMASKED_SHARE = 0.75
"""If at least this share of a group's rows is to be compared, the search covers all rows, and the other rows are dropped from
the result."""


@dataclass(frozen=True, slots=True)
class Group:
    """The codes of the rows from `first` to before `end` of a matrix."""

    first: int
    end: int
    codes: Any


class QuantisedGroups:
    """The groups of one append-only matrix. A background thread makes the groups once they are first requested."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._made: list[Group] = []
        self._lock = threading.Lock()
        self._maker: threading.Thread | None = None

    def made(self, rows: int, blocks: Callable[[int], Sequence[CodedBlock]]) -> list[Group]:
        """Returns the finished groups that contain any of the first `rows` rows, and starts to make the missing groups.

        The groups are adjacent, and the first begins with the first row; the last may end after `rows`. `blocks(n)` returns the
        one-byte codes of the first n rows; n is a multiple of the block size.
        """
        if self._dim % 8 or not _is_installed():
            return []  # the library's codes are whole bytes
        with self._lock:
            end = self._made[-1].end if self._made else 0
            if rows - end >= MIN_GROUP_ROWS and self._maker is None:
                self._maker = in_background(lambda: self._make(rows, blocks), "groups")
            return [group for group in self._made if group.first < rows]

    def _make(self, rows: int, blocks: Callable[[int], Sequence[CodedBlock]]) -> None:
        try:
            coded = blocks(rows // MIN_GROUP_ROWS * MIN_GROUP_ROWS)
            for first, end in _spans(rows):
                if any((group.first, group.end) == (first, end) for group in self._made):
                    continue
                per_block = len(coded[0].units)
                codes = _quantised(self._dim, coded[first // per_block : end // per_block])
                with self._lock:
                    # The new group replaces the smaller groups that it contains.
                    others = [group for group in self._made if group.end <= first or group.first >= end]
                    self._made = sorted([*others, Group(first, end, codes)], key=lambda group: group.first)
        finally:
            with self._lock:
                self._maker = None


def _spans(rows: int) -> Iterator[tuple[int, int]]:
    """Yields (begin, end) of each group of a matrix with `rows` rows, largest group first."""
    first, size = 0, MAX_GROUP_ROWS
    while size >= MIN_GROUP_ROWS:
        if rows - first >= size:
            yield first, first + size
            first += size
        else:
            size //= 2


@cache
def _is_installed() -> bool:
    """Whether turbovec is installed; some machines lack it. Without turbovec, all rows are compared by their one-byte codes."""
    return find_spec("turbovec") is not None


def _quantised(dim: int, blocks: Sequence[CodedBlock]) -> Any:
    from turbovec import TurboQuantIndex  # imported here so that small memories need not load it

    group = TurboQuantIndex(dim=dim, bit_width=GROUP_BITS)
    for block in blocks:
        for start in range(0, len(block.units), CODED_ROWS):
            part = slice(start, start + CODED_ROWS)
            group.add(block.codes[part] * block.units[part, None])
        drop_first(block.codes)
    group.prepare()
    return group


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The `rows` found in a group and their `scores`, best first. The group's other compared rows score at most `others`."""

    scores: NDArray[np.float32]
    rows: NDArray[np.int64]
    others: float


def search_group(group: Group, query: NDArray[np.float32], compared: NDArray[np.bool_], k: int) -> FoundRows:
    """Returns the rows in the mask `compared` that score best among the group's rows, according to the group's codes.

    If few rows are compared, returns the `k` best compared rows; otherwise, the compared rows among the group's `k` best rows.
    `query` has shape (dim,); `compared` is a mask over the matrix, and rows after its end are not compared.
    """
    here = compared[group.first : group.end]
    living = int(np.count_nonzero(here))
    if not living:
        return FoundRows(np.empty(0, np.float32), np.empty(0, np.int64), -np.inf)
    if len(here) < group.end - group.first:
        here = np.concatenate([here, np.zeros(group.end - group.first - len(here), np.bool_)])
    # A mask doubles the duration of a search.
    mask = None if living >= UNMASKED_SHARE * len(here) else np.ascontiguousarray(here)
    found = group.codes.search(query[None], k, mask=mask)
    scores, rows = np.asarray(found[0])[0], np.asarray(found[1])[0].astype(np.int64)
    others = float(scores[-1]) if len(scores) == k else -np.inf
    if mask is None:
        living_rows = here[rows]
        scores, rows = scores[living_rows], rows[living_rows]
    return FoundRows(scores, group.first + rows, others)
