"""Vectors as codes of one byte a component: half of the bytes to read where all rows are compared with a query.

A row's code depends on the row alone: its components in units of 1/127 of the largest, rounded. So the order of arrival, a
removal and a restart change no code, and none is ever trained or written again. A code times its unit is off by half a unit in
each component at most, and that bounds what a product with it is off by.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.fixed_point import Fixed, floats
from store.index.file_arrays import IN_MEMORY, ArrayStorage, read_ahead
from store.index.pager import Pager
from store.index.parallel import in_parallel
from store.index.vectors.rows_in_blocks import by_block, take
from store.index.vectors.taken_block import TakenBlock

CODE_MAX = 127
CODED_MIN_ROWS = 8_192
"""Least number of living rows that are compared by codes. Fewer vectors are read in less than a millisecond."""
GROUPED_MIN_ROWS = 65_536
"""Least number of living rows whose nearest are found by the codes of four bits (`store.index.quantised`)."""
CODED_ROWS = 2_048
"""Rows that are coded at a time: 3 MB at 384 dimensions, which stay in the processor's cache."""


@dataclass(frozen=True, slots=True, eq=False)
class CodedBlock:
    """Codes of the rows of one block of vectors: `codes` int8 of shape (rows, dim), `units` float32 of shape (rows,)."""

    codes: NDArray[np.int8]
    units: NDArray[np.float32]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"codes": self.codes, "units": self.units}


@dataclass(slots=True)
class VectorCodes:
    """The codes of an append-only matrix of vectors in blocks, made when they are first asked for."""

    dim: int
    storage: ArrayStorage = IN_MEMORY
    """Where they are made."""
    _blocks: list[CodedBlock] = field(default_factory=list)
    _n: int = 0
    _lock: Any = field(default_factory=threading.Lock)
    _pager: Pager = field(default_factory=lambda: Pager("codes"))

    def load(self, blocks: Sequence[CodedBlock]) -> None:
        """Takes over the codes of whole blocks, which are never written to."""
        self._blocks = list(blocks)
        self._n = sum(len(block.units) for block in blocks)

    def adopt(self, number: int, saved: CodedBlock) -> None:
        """Takes a whole block from where it was written down; equal to the one that is there."""
        with self._lock:
            self._pager.forget(self._blocks[number])
            self._blocks[number] = saved

    @property
    def n(self) -> int:
        """How many rows, from the first on, have codes."""
        return self._n

    def of(self, rows: NDArray[np.int64], block_rows: int) -> CodedBlock:
        """The codes of `rows`, which have some and are in order, copied."""
        codes, units = np.empty((len(rows), self.dim), np.int8), np.empty(len(rows), np.float32)
        parts = [(self._blocks[number], part, places) for number, part, places in by_block(rows, block_rows)]
        for block, _, places in parts:
            read_ahead(block.codes, places)
        for block, part, places in parts:
            take(block.codes, places, codes[part])
            take(block.units, places, units[part])
        return CodedBlock(codes, units)

    def most(self, rows: NDArray[np.int64], queries: NDArray[np.float32], block_rows: int) -> NDArray[np.float32]:
        """What the products of `rows`, which have codes and are in order, with `queries` are at most; shape (len(rows),).
        `queries`: one for each row, shape (len(rows), dim). Apart from what float32 rounds."""
        coded = self.of(rows, block_rows)
        off = np.abs(queries).sum(axis=1) / 2
        found: NDArray[np.float32] = coded.units * (
            np.einsum("ij,ij->i", coded.codes.astype(np.float32), queries) + off
        )
        return found

    def page_in(self) -> None:
        """Has all codes brought into memory beside all."""
        self._pager.bring(tuple(self._blocks))

    def wait_until_paged_in(self) -> None:
        """Until those that were there at the last `page_in` are in memory."""
        self._pager.wait()

    @property
    def bytes(self) -> int:
        return sum(block.codes.nbytes + block.units.nbytes for block in self._blocks)

    def blocks(self, vectors: Sequence[Fixed | TakenBlock], n: int, block_rows: int) -> list[CodedBlock]:
        """Those of the first `n` rows of `vectors`, which come in blocks of `block_rows`. O(rows that have none yet)."""
        with self._lock:
            self._extend(vectors, n, block_rows)
            starts = range(0, n, block_rows)
            return [
                CodedBlock(block.codes[: n - start], block.units[: n - start])
                for start, block in zip(starts, self._blocks, strict=False)
            ]

    def _extend(self, vectors: Sequence[Fixed | TakenBlock], n: int, block_rows: int) -> None:
        pieces, at = [], self._n
        while at < n:
            number, offset = divmod(at, block_rows)
            if number == len(self._blocks):
                codes = self.storage.empty((block_rows, self.dim), np.int8)
                self._blocks.append(CodedBlock(codes, np.empty(block_rows, np.float32)))
            end = min(block_rows, n - number * block_rows, offset + CODED_ROWS)
            block = vectors[number]
            if isinstance(block, TakenBlock):
                block.take_codes(offset, end, self._blocks[number])
            else:
                pieces.append((block, self._blocks[number], slice(offset, end)))
            at += end - offset
        in_parallel(_encode, pieces)
        # Last: where one of them failed, for want of memory, all are made again.
        self._n = max(self._n, n)


def _encode(piece: tuple[Fixed, CodedBlock, slice]) -> None:
    vectors, block, part = piece
    rows = floats(vectors[part])
    largest = np.abs(rows).max(axis=1, initial=0.0)
    units = np.divide(largest, CODE_MAX, dtype=np.float32)
    # The least unit keeps a zero vector's codes zero.
    scaled = rows / np.maximum(units, np.float32(1e-30))[:, None]
    block.codes[part] = np.rint(scaled, out=scaled).astype(np.int8)
    block.units[part] = units
