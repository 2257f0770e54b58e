"""Codes of four bits a component, in memory, that find the rows which may be near a query: TurboQuant by the library turbovec.

The one-byte codes of ten million rows are 3.8 GB, which take a processor more than a tenth of a second to read. A group is some
rows that are all there, `LEAST_ROWS` to `MOST_ROWS` of them. It is made once and never changed, so no query waits for a commit
nor the other way round. Two small ones that stand side by side become one: a search of a group costs a third of a millisecond
whatever is in it. Rows behind the last group are few. `docs/decisions/0004-four-bit-codes.md` compares libraries.

A row's code follows from its one-byte code alone (rotation and codebook depend on the number of dimensions, nothing is
trained), so neither the order of arrival nor a restart changes a score.
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

LEAST_ROWS = 32_768
MOST_ROWS = 1_048_576
"""Rows of a group are a power of two: at 384 dimensions 6 to 201 MB of codes."""
GROUP_BITS = 4
SCORE_DEVIATION = 0.1
"""Times 1 / sqrt(dim): standard deviation of a score's error, where rows are unit vectors. Measured at 384: 0.005, and 0.029
at most among 800,000."""
UNMASKED_SHARE = 0.75
"""Share of a group's rows that are compared, from which the others are dropped after the search."""


@dataclass(frozen=True, slots=True)
class Group:
    """The rows from `first` to `end` of a matrix by their codes."""

    first: int
    end: int
    codes: Any


class QuantisedGroups:
    """The groups of one append-only matrix. They are made by a thread of their own, from when they are first asked for."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._made: list[Group] = []
        self._lock = threading.Lock()
        self._maker: threading.Thread | None = None

    def made(self, rows: int, blocks: Callable[[int], Sequence[CodedBlock]]) -> list[Group]:
        """Those that are there and have some of the first `rows` rows, one behind the other from the first row on; others are
        made meanwhile. The last may end behind `rows`.

        `blocks` gives the one-byte codes of the first so many rows, whose ends must be those of blocks.
        """
        if self._dim % 8 or not _is_installed():
            return []  # the library's codes are whole bytes
        with self._lock:
            end = self._made[-1].end if self._made else 0
            if rows - end >= LEAST_ROWS and self._maker is None:
                self._maker = in_background(lambda: self._make(rows, blocks), "groups")
            return [group for group in self._made if group.first < rows]

    def wait(self) -> None:
        """Until those that are being made are there."""
        maker = self._maker
        if maker is not None:
            maker.join()

    def _make(self, rows: int, blocks: Callable[[int], Sequence[CodedBlock]]) -> None:
        try:
            coded = blocks(rows // LEAST_ROWS * LEAST_ROWS)
            for first, end in _spans(rows):
                if any((group.first, group.end) == (first, end) for group in self._made):
                    continue
                per_block = len(coded[0].units)
                codes = _quantised(self._dim, coded[first // per_block : end // per_block])
                with self._lock:
                    # Smaller ones within it have served until now.
                    others = [group for group in self._made if group.end <= first or group.first >= end]
                    self._made = sorted([*others, Group(first, end, codes)], key=lambda group: group.first)
        finally:
            with self._lock:
                self._maker = None


def _spans(rows: int) -> Iterator[tuple[int, int]]:
    """Where groups of `rows` rows begin and end: the largest first. What is left is less than the least has."""
    first, size = 0, MOST_ROWS
    while size >= LEAST_ROWS:
        if rows - first >= size:
            yield first, first + size
            first += size
        else:
            size //= 2


@cache
def _is_installed() -> bool:
    """There is no turbovec for some machines; there all rows are compared by their codes of one byte."""
    return find_spec("turbovec") is not None


def _quantised(dim: int, blocks: Sequence[CodedBlock]) -> Any:
    from turbovec import TurboQuantIndex  # which small memories need not load

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
    """`rows` of a group and their `scores`, best first. No other compared row of it scores more than `others`."""

    scores: NDArray[np.float32]
    rows: NDArray[np.int64]
    others: float


def search_group(group: Group, query: NDArray[np.float32], compared: NDArray[np.bool_], k: int) -> FoundRows:
    """The best of a group's `compared` rows by its codes: those among the `k` best of all, or `k` where few are compared.

    `query` has shape (dim,), `compared` (rows of the matrix,); rows behind those are not compared.
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
