"""One-byte codes of vector components, which halve the number of bytes to read when all rows are compared with a query.

A row's code depends only on the row: each component is rounded to a multiple of the row's unit, which is 1/127 of its largest
component. The order of arrival, removals and restarts therefore do not change codes, and codes are never trained or rewritten.
A code times its unit differs from the vector by at most half a unit in each component; this bounds the error of a product.
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
from store.index.part import PartFiles, PartWriter
from store.index.vectors.row_subset import RowSubset
from store.index.vectors.rows_in_blocks import by_block, copy_rows

CODE_MAX = 127
CODED_MIN_ROWS = 8_192
"""Minimum number of living rows for comparisons by codes. Fewer vectors are read in less than a millisecond."""
GROUPED_MIN_ROWS = 65_536
"""Minimum number of living rows for searches with four-bit codes (`store.index.quantised`)."""
CODED_ROWS = 2_048
"""Number of rows encoded at a time: 3 MB at 384 dimensions, which fit into the processor's cache."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CodedBlock:
    """The codes of one block of vectors: `codes`, int8 of shape (rows, dim), and `units`, float32 of shape (rows,)."""

    codes: NDArray[np.int8]
    units: NDArray[np.float32]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"codes": self.codes, "units": self.units}


@dataclass(slots=True)
class VectorCodes:
    """The codes of an append-only matrix of vectors, in blocks, computed on first use."""

    dim: int
    storage: ArrayStorage = IN_MEMORY
    """Allocates the codes."""
    _blocks: list[CodedBlock] = field(default_factory=list)
    _n: int = 0
    _lock: Any = field(default_factory=threading.Lock)
    _pager: Pager = field(default_factory=lambda: Pager("codes"))

    def save(self, files: PartWriter, name: str, full: int) -> None:
        """Writes the codes of the first `full` blocks; these blocks must be full."""
        for number, block in enumerate(self._blocks[:full]):
            files.array(f"{name}-codes-{number:05d}", block.codes, immutable=True, checked_later=True)
            files.array(f"{name}-units-{number:05d}", block.units, immutable=True, checked_later=True)

    def map(self, files: PartFiles, name: str) -> None:
        """Maps the codes of full blocks, which replace equal codes in memory."""
        for number in range(files.count(f"{name}-codes")):
            known = self._blocks[number] if number < len(self._blocks) else None
            codes = files.array(f"{name}-codes-{number:05d}", known.codes if known else None)
            if known is not None and codes is known.codes:
                continue
            block = CodedBlock(codes, files.array(f"{name}-units-{number:05d}"))
            with self._lock:
                if known is None:
                    self._blocks.append(block)
                    self._n += len(block.units)
                else:
                    self._blocks[number] = block

    @property
    def n(self) -> int:
        """Number of rows, from the first row on, that have codes."""
        return self._n

    def of(self, rows: NDArray[np.int64], block_rows: int) -> CodedBlock:
        """Returns a copy of the codes of `rows` (ascending). All these rows must have codes."""
        codes, units = np.empty((len(rows), self.dim), np.int8), np.empty(len(rows), np.float32)
        parts = [(self._blocks[number], part, places) for number, part, places in by_block(rows, block_rows)]
        for block, _, places in parts:
            read_ahead(block.codes, places)
        for block, part, places in parts:
            copy_rows(block.codes, places, codes[part])
            copy_rows(block.units, places, units[part])
        return CodedBlock(codes, units)

    def upper_bounds(
        self, rows: NDArray[np.int64], queries: NDArray[np.float32], block_rows: int
    ) -> NDArray[np.float32]:
        """Returns upper bounds of the products of `rows` and `queries`, shape (len(rows),), up to float32 rounding errors.

        `rows` must be ascending and have codes. `queries`: one query per row, shape (len(rows), dim).
        """
        coded = self.of(rows, block_rows)
        off = np.abs(queries).sum(axis=1) / 2
        found: NDArray[np.float32] = coded.units * (
            np.einsum("ij,ij->i", coded.codes.astype(np.float32), queries) + off
        )
        return found

    def page_in(self) -> None:
        """Starts to read all codes into memory in the background."""
        self._pager.bring(tuple(self._blocks))

    @property
    def bytes(self) -> int:
        return sum(block.codes.nbytes + block.units.nbytes for block in self._blocks)

    def blocks(self, vectors: Sequence[Fixed | RowSubset], n: int, block_rows: int) -> list[CodedBlock]:
        """Returns the codes of the first `n` rows of `vectors`, in blocks of `block_rows`. Takes O(rows without codes) time."""
        with self._lock:
            self._extend(vectors, n, block_rows)
            starts = range(0, n, block_rows)
            return [
                CodedBlock(block.codes[: n - start], block.units[: n - start])
                for start, block in zip(starts, self._blocks, strict=False)
            ]

    def _extend(self, vectors: Sequence[Fixed | RowSubset], n: int, block_rows: int) -> None:
        pieces, at = [], self._n
        while at < n:
            number, offset = divmod(at, block_rows)
            if number == len(self._blocks):
                codes = self.storage.empty((block_rows, self.dim), np.int8)
                self._blocks.append(CodedBlock(codes, np.empty(block_rows, np.float32)))
            end = min(block_rows, n - number * block_rows, offset + CODED_ROWS)
            block = vectors[number]
            if isinstance(block, RowSubset):
                block.copy_codes(offset, end, self._blocks[number])
            else:
                pieces.append((block, self._blocks[number], slice(offset, end)))
            at += end - offset
        in_parallel(_encode, pieces)
        # Set last, so that the next call repeats all encodings if one fails for lack of memory.
        self._n = max(self._n, n)


def _encode(piece: tuple[Fixed, CodedBlock, slice]) -> None:
    vectors, block, part = piece
    rows = floats(vectors[part])
    largest = np.abs(rows).max(axis=1, initial=0.0)
    units = np.divide(largest, CODE_MAX, dtype=np.float32)
    # The lower bound avoids a division by zero if a vector is zero.
    scaled = rows / np.maximum(units, np.float32(1e-30))[:, None]
    block.codes[part] = np.rint(scaled, out=scaled).astype(np.int8)
    block.units[part] = units
