"""Codes of four bits a component, in memory, that find the rows which may be near a query: TurboQuant by the library turbovec.

The one-byte codes of ten million rows are 3.8 GB, which take a processor more than a tenth of a second to read. A group is
`GROUP_ROWS` rows that are all there; it is made once and never changed, so no query waits for a commit nor the other way round.
Rows behind the last whole group are few. `docs/explanation/retrieval.md` has the libraries that were compared.

A row's code follows from its one-byte code alone (rotation and codebook depend on the number of dimensions, nothing is
trained), so neither the order of arrival nor a restart changes a score.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.parallel import in_background
from store.index.vectors.codes import CODED_ROWS, CodedBlock

GROUP_ROWS = 262_144
"""Rows of a group: at 384 dimensions 51 MB of codes, looked through in a millisecond."""
GROUP_BITS = 4
SCORE_DEVIATION = 0.1
"""Times 1 / sqrt(dim): standard deviation of a score's error, where rows are unit vectors. Measured at 384: 0.005, and 0.029
at most among 800,000."""
UNMASKED_SHARE = 0.75
"""Share of a group's rows that are compared, from which the others are dropped after the search."""


class QuantisedGroups:
    """The groups of one append-only matrix. They are made by a thread of their own, from when they are first asked for."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._made: list[Any] = []
        self._lock = threading.Lock()
        self._maker: threading.Thread | None = None

    def made(self, rows: int, blocks: Callable[[int], Sequence[CodedBlock]]) -> list[Any]:
        """Those of the first whole groups of `rows` rows that are there; the others are made meanwhile.

        `blocks` gives the one-byte codes of the first so many rows, whose ends must be those of blocks.
        """
        whole = rows // GROUP_ROWS
        if self._dim % 8 or not _is_installed():
            return []  # the library's codes are whole bytes
        with self._lock:
            if len(self._made) < whole and self._maker is None:
                self._maker = in_background(lambda: self._make(whole, blocks), "groups")
            return self._made[:whole]

    def wait(self) -> None:
        """Until those that are being made are there."""
        maker = self._maker
        if maker is not None:
            maker.join()

    def _make(self, whole: int, blocks: Callable[[int], Sequence[CodedBlock]]) -> None:
        try:
            coded = blocks(whole * GROUP_ROWS)
            per_group = GROUP_ROWS // len(coded[0].units)
            while len(self._made) < whole:
                first = len(self._made) * per_group
                group = _quantised(self._dim, coded[first : first + per_group])
                with self._lock:
                    self._made = [*self._made, group]
        finally:
            with self._lock:
                self._maker = None


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
    group.prepare()
    return group


@dataclass(frozen=True, slots=True)
class FoundRows:
    """`rows` of a group, from 0, and their `scores`, best first. No other compared row scores more than `others`."""

    scores: NDArray[np.float32]
    rows: NDArray[np.int64]
    others: float


def search_group(group: Any, query: NDArray[np.float32], compared: NDArray[np.bool_], k: int) -> FoundRows:
    """The best of a group's `compared` rows by its codes: those among the `k` best of all, or `k` where few are compared.

    `query` has shape (dim,), `compared` (rows of the group,).
    """
    living = int(np.count_nonzero(compared))
    if not living:
        return FoundRows(np.empty(0, np.float32), np.empty(0, np.int64), -np.inf)
    # A mask doubles the time of a search.
    mask = None if living >= UNMASKED_SHARE * len(compared) else np.ascontiguousarray(compared)
    found = group.search(query[None], k, mask=mask)
    scores, rows = np.asarray(found[0])[0], np.asarray(found[1])[0].astype(np.int64)
    others = float(scores[-1]) if len(scores) == k else -np.inf
    if mask is None:
        living_rows = compared[rows]
        scores, rows = scores[living_rows], rows[living_rows]
    return FoundRows(scores, rows, others)
