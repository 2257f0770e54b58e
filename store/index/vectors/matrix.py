"""Vectors by row, in an append-only matrix that consists of blocks. Readers use views of the rows present so far.

A full block never changes, and appended rows lie beyond the end of existing views.
"""

from collections.abc import Sequence
from copy import copy
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.fixed_point import Fixed, fixed, floats, not_zero, scales, width
from store.index.append_only_arrays import GrowableArray
from store.index.file_arrays import IN_MEMORY, ArrayStorage, read_ahead
from store.index.parallel import in_parallel
from store.index.part import Part, PartFiles, PartWriter
from store.index.quantised.groups import QuantisedGroups
from store.index.quantised.sample import RowSample, SampledRows, Sums
from store.index.vectors.codes import GROUPED_MIN_ROWS, CodedBlock, VectorCodes
from store.index.vectors.row_subset import RowSubset
from store.index.vectors.rows_in_blocks import by_block, copy_rows

BLOCK_VECTORS = 16384
"""Number of vectors in one block of `Vectors`: 13 MB at 384 dimensions, which can be allocated without a pause."""

COMPARED_ROWS = 256
"""Number of vectors compared with a query at a time: 0.4 MB as float32. Larger buffers are allocated anew each time."""

PART_ROWS = 4_096
"""Number of vectors in a part; a thread compares one part after another. A part is smaller than a block, so that all processors
work on the same block."""

Block = Fixed | RowSubset


def _block(dim: int, storage: ArrayStorage) -> Fixed:
    """Allocates a block of `BLOCK_VECTORS` vectors in `storage`, or in a separate anonymous mapping.

    A mapping takes no memory until it is written, and its memory is returned to the system after the last view is deleted.
    malloc would do this only for the first such blocks, and take later blocks from its heap, which returns no memory.
    """
    if storage is not IN_MEMORY:
        return storage.empty((BLOCK_VECTORS, width(dim)), np.int16)
    pages = mmap(-1, BLOCK_VECTORS * width(dim) * np.dtype(np.int16).itemsize, flags=MAP_PRIVATE | MAP_ANONYMOUS)
    return np.frombuffer(pages, np.int16).reshape(BLOCK_VECTORS, width(dim))


def _whole(block: Block) -> Fixed:
    return block.copied() if isinstance(block, RowSubset) else block


def _read_ahead(block: Block, rows: NDArray[np.int64]) -> None:
    # The rows of a `RowSubset` are in another matrix, which reads them ahead itself.
    if not isinstance(block, RowSubset):
        read_ahead(block, rows)


def _copy_rows(block: Block, rows: NDArray[np.int64], out: Fixed) -> None:
    if isinstance(block, RowSubset):
        block.copy_rows(rows, out)
    else:
        copy_rows(block, rows, out)


def _map_block(files: PartFiles, name: str, number: int, known: Block | None = None) -> Fixed:
    """Maps a block of vectors; returns `known` if it is mapped from the same file."""
    return files.array(f"{name}-vectors-{number:05d}", known if isinstance(known, np.ndarray) else None, scattered=True)


class VectorsView:
    """Vectors as of one commit; each row is L2-normalised or zero."""

    __slots__ = ("_blocks", "_codes", "_groups", "_sample", "dim", "known", "n")

    def __init__(
        self,
        blocks: tuple[Block, ...],
        known: NDArray[np.bool_],
        dim: int,
        codes: VectorCodes,
        groups: QuantisedGroups,
        sample: RowSample,
    ) -> None:
        self._blocks = blocks
        self._codes = codes
        self._groups = groups
        self._sample = sample
        self.n = len(known)
        self.dim = dim
        self.known = known
        """Mask of the rows that are not zero, shape (n,): the encoder knows at least a part of their texts."""

    def blocks(self) -> list[tuple[int, Fixed]]:
        """Returns (first row, vectors) of each block, in row order. `store.fixed_point.floats` converts them to float32."""
        starts = range(0, self.n, BLOCK_VECTORS)
        return [(start, _whole(block)[: self.n - start]) for start, block in zip(starts, self._blocks, strict=False)]

    def coded_blocks(self) -> list[tuple[int, CodedBlock]]:
        """Returns (first row, codes) of each block, in row order. Takes O(rows without codes) time; views share codes."""
        coded = self._codes.blocks(self._blocks, self.n, BLOCK_VECTORS)
        return list(zip(range(0, self.n, BLOCK_VECTORS), coded, strict=True))

    def codes_of(self, rows: NDArray[np.int64]) -> CodedBlock:
        """Returns a copy of the codes of `rows` (ascending)."""
        self.coded_blocks()
        return self._codes.of(rows, BLOCK_VECTORS)

    @property
    def coded_rows(self) -> int:
        """Number of rows, from the first row on, that already have codes."""
        return min(self._codes.n, self.n)

    def upper_bounds(self, rows: NDArray[np.int64], queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns upper bounds of the cosines of `rows` and `queries`, shape (len(rows),).

        `rows` must be ascending and have codes. `queries`: one query per row, shape (len(rows), dim).
        """
        return self._codes.upper_bounds(rows, queries, BLOCK_VECTORS)

    def page_in_codes(self) -> None:
        """Starts to read all codes into memory in the background, for callers with many random accesses."""
        self._codes.page_in()

    def groups(self) -> list[Any]:
        """Returns the finished groups (`store.index.quantised.groups`) in row order, beginning with the first row."""

        def coded(rows: int) -> list[CodedBlock]:
            return self._codes.blocks(self._blocks, rows, BLOCK_VECTORS)

        return self._groups.made(self.n, coded)

    def sample(self, living: int) -> SampledRows:
        """Returns the sample of the rows for a memory with `living` living rows (`store.index.quantised.sample`)."""
        return self._sample.of([block for _, block in self.coded_blocks()], living, BLOCK_VECTORS)

    def sampled_sums(self, query: NDArray[np.float32], compared: NDArray[np.bool_], living: int) -> Sums:
        """Returns the sums of the cosines of `query`, shape (dim,), and the sampled rows in the mask `compared`."""

        def codes_of(rows: NDArray[np.int64]) -> CodedBlock:
            return self._codes.of(rows, BLOCK_VECTORS)

        return self.sample(living).sums(query.astype(np.float64), compared, codes_of)

    def scores(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the cosine of each row and `query`, shape (n,); `query` has shape (dim,)."""
        out = np.empty(self.n, np.float32)

        def fill(part: tuple[int, int, Fixed]) -> None:
            start, begin, block = part
            if not begin:
                read_ahead(block)
            whole = np.empty((COMPARED_ROWS, self.dim), np.float32)
            for at in range(begin, min(begin + PART_ROWS, len(block)), COMPARED_ROWS):
                several = block[at : at + COMPARED_ROWS]
                products = out[start + at : start + at + len(several)]
                np.copyto(whole[: len(several)], several[:, :-1])
                np.dot(whole[: len(several)], query, out=products)
                # Scaling the products instead of the components is half the work, and bit-identical.
                products *= scales(several)

        parts = [(start, at, block) for start, block in self.blocks() for at in range(0, len(block), PART_ROWS)]
        in_parallel(fill, parts)
        return out

    def rows(
        self, rows: NDArray[np.integer[Any]] | Sequence[int], out: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """Returns a copy of the vectors of `rows`, shape (len(rows), dim), written to `out` if given."""
        return floats(self.fixed(rows), out)

    def fixed(self, rows: NDArray[np.integer[Any]] | Sequence[int], out: Fixed | None = None) -> Fixed:
        """Returns a copy of the vectors of `rows` in fixed point, written to `out` if given."""
        wanted = np.asarray(rows, dtype=np.int64)
        if out is None:
            out = np.empty((len(wanted), width(self.dim)), np.int16)
        if not len(wanted):
            return out
        in_order = bool((wanted[1:] >= wanted[:-1]).all())
        order = None if in_order else np.argsort(wanted)
        parts = by_block(wanted if order is None else wanted[order], BLOCK_VECTORS)
        for number, _, places in parts:
            _read_ahead(self._blocks[number], places)
        ordered = out if order is None else np.empty_like(out)
        for number, part, places in parts:
            _copy_rows(self._blocks[number], places, ordered[part])
        if order is not None:
            out[order] = ordered
        return out


class Vectors(Part):
    """An append-only matrix of vectors that consists of blocks. Appending never copies existing vectors."""

    def __init__(self, dim: int, storage: ArrayStorage = IN_MEMORY) -> None:
        self.dim = dim
        self._storage = storage
        self._blocks: list[Block] = []
        self._known = GrowableArray(np.bool_)
        self._codes = VectorCodes(dim, storage)
        self._groups = QuantisedGroups(dim)
        self._sample = RowSample(dim)

    @property
    def n(self) -> int:
        return self._known.n

    def extend(self, vectors: NDArray[np.float32]) -> None:
        """Converts `vectors`, shape (n, dim), to fixed point (`store.fixed_point`) and appends them."""
        self.append(fixed(vectors))

    def append(self, vectors: Fixed) -> None:
        """Appends vectors that are already in fixed point."""
        done = 0
        while done < len(vectors):
            offset = self.n % BLOCK_VECTORS
            if offset == 0:
                self._blocks.append(_block(self.dim, self._storage))
            part = vectors[done : done + BLOCK_VECTORS - offset]
            self._last()[offset : offset + len(part)] = part
            self._known.extend(not_zero(part))
            done += len(part)

    def fill_from(self, other: VectorsView, rows: NDArray[np.int64]) -> None:
        """Fills the empty matrix with the `rows` (ascending) of `other`. The vectors are copied only when they are needed."""
        self._blocks = [RowSubset(other, rows[at : at + BLOCK_VECTORS]) for at in range(0, len(rows), BLOCK_VECTORS)]
        self._known.set(other.known[rows])

    def _last(self) -> Fixed:
        """Returns the last block; it can be written after the existing rows."""
        last = self._blocks[-1]
        if isinstance(last, RowSubset):
            own = _block(self.dim, self._storage)
            last.copy_rows(np.arange(len(last)), own[: len(last)])
            self._blocks[-1] = last = own
        return last

    def put(self, rows: NDArray[np.integer[Any]], vectors: Fixed) -> None:
        """Writes `vectors` at `rows`, which may lie beyond the end; fills the matrix in any order when a store is opened.

        The values of rows that are never written are undefined.
        """
        if not len(rows):
            return
        self._known.extend(np.zeros(max(int(rows.max()) + 1 - self.n, 0)))
        self._known.put(rows, not_zero(vectors))
        while len(self._blocks) * BLOCK_VECTORS < self.n:
            self._blocks.append(_block(self.dim, self._storage))
        block_of = rows // BLOCK_VECTORS
        for block in np.unique(block_of):
            here = block_of == block
            _whole(self._blocks[block])[rows[here] % BLOCK_VECTORS] = vectors[here]

    def save(self, files: PartWriter, name: str) -> None:
        # `known` is saved as well, so that a start does not need to read the vectors.
        view = self.view()
        files.array(f"{name}-encoded", view.known)
        for start, block in view.blocks():
            # Full blocks never change, so blocks in the previous checkpoint are linked instead of being written again.
            full = len(block) == BLOCK_VECTORS
            files.array(f"{name}-vectors-{start // BLOCK_VECTORS:05d}", block, immutable=full, checked_later=True)
        if view.n >= GROUPED_MIN_ROWS:
            view.coded_blocks()
            self._codes.save(files, name, view.n // BLOCK_VECTORS)

    def load(self, files: PartFiles, name: str) -> None:
        known = files.array(f"{name}-encoded")
        self._known.extend(known)
        self._blocks = [_map_block(files, name, number) for number in range(files.count(f"{name}-vectors"))]
        self._codes.map(files, name)
        if rest := len(known) % BLOCK_VECTORS:
            # The last block is not full, so vectors will be appended to it.
            last, saved = _block(self.dim, self._storage), _whole(self._blocks[-1])
            read_ahead(saved)
            last[:rest] = saved[:rest]
            self._blocks[-1] = last

    def map_saved(self, files: PartFiles, name: str, saved: "Vectors", /) -> None:
        """Maps the full blocks and their codes, so that the disk has them once and the next checkpoint can link the files."""
        for number in range(saved.n // BLOCK_VECTORS):
            self._blocks[number] = _map_block(files, name, number, self._blocks[number])
        self._codes.map(files, name)

    @property
    def own_bytes(self) -> int:
        """Number of bytes of own blocks, of copied rows of subsets, and of codes."""
        return (
            sum(block.bytes if isinstance(block, RowSubset) else block.nbytes for block in self._blocks)
            + self._codes.bytes
        )

    def copy(self) -> "Vectors":
        """Returns a matrix of the existing vectors that shares the blocks. Nothing may be appended to it."""
        other = copy(self)
        other._blocks, other._known = list(self._blocks), self._known.copy()
        return other

    def view(self) -> VectorsView:
        return VectorsView(tuple(self._blocks), self._known.view(), self.dim, self._codes, self._groups, self._sample)
