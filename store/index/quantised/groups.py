"""Codes of four bits for each component, in memory, that find the rows near a query: TurboQuant by the library turbovec.

The one-byte codes of ten million rows are 3.8 GB; reading them takes one processor more than a tenth of a second. A group
covers `MIN_GROUP_ROWS` to `MAX_GROUP_ROWS` consecutive rows. A group never changes after it was made, so queries and commits
do not wait for each other. Two small neighbouring groups become one, because searching a group costs a third of a millisecond
whatever its size. Few rows follow the last group. `docs/decisions/0004-four-bit-codes.md` compares libraries.

A row's code depends on its one-byte code alone (rotation and codebook depend on the number of dimensions; nothing is trained),
so neither the order of arrival nor a restart changes a score.
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
"""A group has a power of two of rows: 6 to 201 MB of codes at 384 dimensions."""
GROUP_BITS = 4
SCORE_DEVIATION = 0.1
"""Standard deviation of a score's error, times sqrt(dim), for unit vectors.

Measured at 384 dimensions: a deviation of 0.005, and a largest error of 0.029 among 800,000 scores.
"""
UNMASKED_SHARE = 0.75
"""If at least this share of a group's rows is compared, the search covers all rows and the others are dropped afterwards."""


@dataclass(frozen=True, slots=True)
class Group:
    """The codes of the rows from `first` to `end` of a matrix."""

    first: int
    end: int
    codes: Any


class QuantisedGroups:
    """The groups of one append-only matrix. A background thread makes them once they are first requested."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._made: list[Group] = []
        self._lock = threading.Lock()
        self._maker: threading.Thread | None = None

    def made(self, rows: int, blocks: Callable[[int], Sequence[CodedBlock]]) -> list[Group]:
        """Returns the finished groups that contain some of the first `rows` rows, and starts making missing ones.

        The groups are adjacent and begin with the first row; the last may end after `rows`. `blocks` returns the one-byte codes
        of the first N rows; N is a multiple of the block size.
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
                    # The new group replaces the smaller groups within it.
                    others = [group for group in self._made if group.end <= first or group.first >= end]
                    self._made = sorted([*others, Group(first, end, codes)], key=lambda group: group.first)
        finally:
            with self._lock:
                self._maker = None


def _spans(rows: int) -> Iterator[tuple[int, int]]:
    """Yields the begin and end of each group of `rows` rows, largest first. Fewer than `MIN_GROUP_ROWS` rows remain."""
    first, size = 0, MAX_GROUP_ROWS
    while size >= MIN_GROUP_ROWS:
        if rows - first >= size:
            yield first, first + size
            first += size
        else:
            size //= 2


@cache
def _is_installed() -> bool:
    """Whether turbovec is installed; some machines have no build of it. Without it all rows are compared by one-byte codes."""
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
    """The `rows` found in a group and their `scores`, best first. Other compared rows of the group score at most `others`."""

    scores: NDArray[np.float32]
    rows: NDArray[np.int64]
    others: float


def search_group(group: Group, query: NDArray[np.float32], compared: NDArray[np.bool_], k: int) -> FoundRows:
    """Returns the best of a group's `compared` rows by its codes.

    These are the compared rows among the `k` best of all rows, or the `k` best compared rows if few are compared. `query` has
    shape (dim,); `compared` is a mask over the matrix; rows after its end are not compared.
    """
    here = compared[group.first : group.end]
    living = int(np.count_nonzero(here))
    if not living:
        return FoundRows(np.empty(0, np.float32), np.empty(0, np.int64), -np.inf)
    if len(here) < group.end - group.first:
        here = np.concatenate([here, np.zeros(group.end - group.first - len(here), np.bool_)])
    # A mask doubles the time of a search.
    mask = None if living >= UNMASKED_SHARE * len(here) else np.ascontiguousarray(here)
    found = group.codes.search(query[None], k, mask=mask)
    scores, rows = np.asarray(found[0])[0], np.asarray(found[1])[0].astype(np.int64)
    others = float(scores[-1]) if len(scores) == k else -np.inf
    if mask is None:
        living_rows = here[rows]
        scores, rows = scores[living_rows], rows[living_rows]
    return FoundRows(scores, group.first + rows, others)
