"""Rows of a matrix that consists of blocks: assigns rows to blocks, and copies rows."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEW_ROWS = 8
"""Up to this number of rows of a block are copied one by one, because a call of numpy's `take` costs as much as this many
copies."""


def by_block(rows: NDArray[np.int64], block_rows: int) -> list[tuple[int, slice, NDArray[np.int64]]]:
    """Returns (block, part, places) for each block with some of `rows` (ascending): `rows[part]` are at `places` in the
    block."""
    block_of, inside = np.divmod(rows, block_rows)
    cuts = [0, *(np.flatnonzero(block_of[1:] != block_of[:-1]) + 1).tolist(), len(rows)]
    return [
        (int(block_of[begin]), slice(begin, end), inside[begin:end]) for begin, end in pairwise(cuts) if begin < end
    ]


def copy_rows(block: NDArray[Any], places: NDArray[np.int64], out: NDArray[Any]) -> None:
    """Copies `block[places]` to `out`."""
    if len(places) <= FEW_ROWS:
        for at, place in enumerate(places.tolist()):
            out[at] = block[place]
    else:
        # All indices are within range; numpy's default mode would make an extra copy so that it can raise an error.
        np.take(block, places, axis=0, out=out, mode="clip")
