"""Rows of a matrix that lies in blocks: which block has which of them, and copying them."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEW_ROWS = 8
"""Rows of a block that are copied one by one: numpy's `take` costs as much as copying so many."""


def by_block(rows: NDArray[np.int64], block_rows: int) -> list[tuple[int, slice, NDArray[np.int64]]]:
    """(block, part, places) for each block that has some of `rows`, which are in order: `rows[part]` lie at `places` of it."""
    block_of, inside = np.divmod(rows, block_rows)
    cuts = [0, *(np.flatnonzero(block_of[1:] != block_of[:-1]) + 1).tolist(), len(rows)]
    return [
        (int(block_of[begin]), slice(begin, end), inside[begin:end]) for begin, end in pairwise(cuts) if begin < end
    ]


def take(block: NDArray[Any], places: NDArray[np.int64], out: NDArray[Any]) -> None:
    """Copies `block[places]` to `out`."""
    if len(places) <= FEW_ROWS:
        for at, place in enumerate(places.tolist()):
            out[at] = block[place]
    else:
        # None is outside; numpy would copy once more to be able to say so.
        np.take(block, places, axis=0, out=out, mode="clip")
