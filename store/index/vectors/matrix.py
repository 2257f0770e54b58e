"""Vectors by row: an append-only matrix in blocks, of which readers hold views of the beginning.

A block that is full never changes, and what is appended lies behind the rows that a view has.
"""

from collections.abc import Sequence
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.fixed_point import Fixed, fixed, floats, not_zero, scales, width
from store.index.append_only_arrays import GrowableArray
from store.index.file_arrays import IN_MEMORY, ArrayStorage, read_ahead
from store.index.parallel import in_parallel
from store.index.quantised.groups import QuantisedGroups
from store.index.quantised.sample import RowSample, SampledRows, Sums
from store.index.vectors.codes import CodedBlock, VectorCodes
from store.index.vectors.rows_in_blocks import by_block, take
from store.index.vectors.taken_block import TakenBlock

BLOCK_VECTORS = 16384
"""Vectors a block of `Vectors`: 13 MB at 384 dimensions, small enough to allocate without a pause."""

COMPARED_ROWS = 256
"""Vectors that a query is compared with at a time: 0.4 MB as float32. More would be memory that is handed out anew for each."""

PART_ROWS = 4_096
"""Vectors that one thread compares before it takes others: a block is shared out among all processors."""

Block = Fixed | TakenBlock


def _block(dim: int, storage: ArrayStorage) -> Fixed:
    """Place for `BLOCK_VECTORS` vectors in `storage`, or in memory pages of its own.

    They take no memory before they are written to, and none once the last view of them is gone. The C library would give only
    the first such blocks so, and later ones from a heap, which does not give memory back.
    """
    if storage is not IN_MEMORY:
        return storage.empty((BLOCK_VECTORS, width(dim)), np.int16)
    pages = mmap(-1, BLOCK_VECTORS * width(dim) * np.dtype(np.int16).itemsize, flags=MAP_PRIVATE | MAP_ANONYMOUS)
    return np.frombuffer(pages, np.int16).reshape(BLOCK_VECTORS, width(dim))


def _whole(block: Block) -> Fixed:
    return block.copied() if isinstance(block, TakenBlock) else block


def _read_ahead(block: Block, rows: NDArray[np.int64]) -> None:
    # What a taken block has lies in blocks of another matrix, which do it themselves.
    if not isinstance(block, TakenBlock):
        read_ahead(block, rows)


def _take(block: Block, rows: NDArray[np.int64], out: Fixed) -> None:
    if isinstance(block, TakenBlock):
        block.take(rows, out)
    else:
        take(block, rows, out)


class VectorsView:
    """Vectors as of one commit, rows L2-normalised or zero."""

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
        """Which rows are not zero, shape (n,): the encoder knows something of their text."""

    def blocks(self) -> list[tuple[int, Fixed]]:
        """(first row, vectors) for each block, in row order; `store.fixed_point.floats` makes float32 of them."""
        starts = range(0, self.n, BLOCK_VECTORS)
        return [(start, _whole(block)[: self.n - start]) for start, block in zip(starts, self._blocks, strict=False)]

    def coded_blocks(self) -> list[tuple[int, CodedBlock]]:
        """(first row, codes) for each block, in row order. O(rows that were never asked for), for all views together."""
        coded = self._codes.blocks(self._blocks, self.n, BLOCK_VECTORS)
        return list(zip(range(0, self.n, BLOCK_VECTORS), coded, strict=True))

    def codes_of(self, rows: NDArray[np.int64]) -> CodedBlock:
        """The codes of `rows`, which are in order, copied."""
        self.coded_blocks()
        return self._codes.of(rows, BLOCK_VECTORS)

    @property
    def coded_rows(self) -> int:
        """How many rows, from the first on, have codes already."""
        return min(self._codes.n, self.n)

    def most(self, rows: NDArray[np.int64], queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the cosines of `rows`, which have codes and are in order, with `queries` are at most, shape (len(rows),);
        `queries`: one for each row."""
        return self._codes.most(rows, queries, BLOCK_VECTORS)

    def page_in_codes(self) -> None:
        """Has all codes brought into memory beside all, for whoever reads many of them here and there."""
        self._codes.page_in()

    def groups(self) -> list[Any]:
        """The groups (`store.index.quantised.groups`) that are there, from the first row on."""

        def coded(rows: int) -> list[CodedBlock]:
            return self._codes.blocks(self._blocks, rows, BLOCK_VECTORS)

        return self._groups.made(self.n, coded)

    def wait_for_groups(self) -> None:
        """Until all groups are there that can be."""
        self.groups()
        self._groups.wait()

    def sample(self, living: int) -> SampledRows:
        """Some of the rows, where `living` of them live: `store.index.quantised.sample`."""
        return self._sample.of([block for _, block in self.coded_blocks()], living, BLOCK_VECTORS)

    def sampled_sums(self, query: NDArray[np.float32], compared: NDArray[np.bool_], living: int) -> Sums:
        """Of the cosines of `query`, shape (dim,), with those of the sample that are `compared`, a mask over all rows."""

        def codes_of(rows: NDArray[np.int64]) -> CodedBlock:
            return self._codes.of(rows, BLOCK_VECTORS)

        return self.sample(living).sums(query.astype(np.float64), compared, codes_of)

    def scores(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosine of every row with `query` (shape (dim,)), shape (n,)."""
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
                # Half the work of multiplying the components, and the same to the last bit.
                products *= scales(several)

        parts = [(start, at, block) for start, block in self.blocks() for at in range(0, len(block), PART_ROWS)]
        in_parallel(fill, parts)
        return out

    def rows(
        self, rows: NDArray[np.integer[Any]] | Sequence[int], out: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """The vectors of `rows`, shape (len(rows), dim), copied; to `out` where it is given."""
        return floats(self.fixed(rows), out)

    def fixed(self, rows: NDArray[np.integer[Any]] | Sequence[int], out: Fixed | None = None) -> Fixed:
        """The same as they are kept."""
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
            _take(self._blocks[number], places, ordered[part])
        if order is not None:
            out[order] = ordered
        return out


class Vectors:
    """An append-only matrix of vectors in blocks: growing never copies what is there."""

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
        """Appends `vectors`, shape (n, dim), as `store.fixed_point` keeps them."""
        self.append(fixed(vectors))

    def append(self, vectors: Fixed) -> None:
        """The same of vectors that are so already."""
        done = 0
        while done < len(vectors):
            offset = self.n % BLOCK_VECTORS
            if offset == 0:
                self._blocks.append(_block(self.dim, self._storage))
            part = vectors[done : done + BLOCK_VECTORS - offset]
            self._last()[offset : offset + len(part)] = part
            self._known.extend(not_zero(part))
            done += len(part)

    def take(self, other: VectorsView, rows: NDArray[np.int64]) -> None:
        """Takes `rows` of `other`, which are in order, where there are none yet. They are copied once they are needed."""
        self._blocks = [TakenBlock(other, rows[at : at + BLOCK_VECTORS]) for at in range(0, len(rows), BLOCK_VECTORS)]
        self._known.load(other.known[rows])

    def _last(self) -> Fixed:
        """The last block, to be written to behind the rows that there are."""
        last = self._blocks[-1]
        if isinstance(last, TakenBlock):
            own = _block(self.dim, self._storage)
            last.take(np.arange(len(last)), own[: len(last)])
            self._blocks[-1] = last = own
        return last

    def put(self, rows: NDArray[np.integer[Any]], vectors: Fixed) -> None:
        """Writes `vectors` at `rows`, which may lie behind the end: for filling at opening, in whatever order they come.

        What lies between and is never written is undefined.
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

    def load(
        self,
        blocks: Sequence[Fixed],
        known: NDArray[np.bool_],
        codes: Sequence[CodedBlock] = (),
    ) -> None:
        """Takes over saved rows in blocks of `BLOCK_VECTORS` rows (the last may be shorter); they are never written to.

        `known`: `VectorsView.known` of each, shape (n,); so the vectors need not be read. `codes`: those of the first blocks.
        """
        self._codes.load(codes)
        self._blocks, self._known, n = list(blocks), GrowableArray(np.bool_), len(known)
        self._known.extend(known)
        if n % BLOCK_VECTORS:
            last = _block(self.dim, self._storage)
            read_ahead(blocks[-1])
            last[: n % BLOCK_VECTORS] = blocks[-1][: n % BLOCK_VECTORS]
            self._blocks[-1] = last

    def adopt(self, block: int, saved: Fixed, codes: CodedBlock | None = None) -> None:
        """Takes a whole block, and its codes where there are some, from where they were written."""
        self._blocks[block] = saved
        if codes is not None:
            self._codes.adopt(block, codes)

    @property
    def own_bytes(self) -> int:
        """What is copied of taken rows, the rows that came since, and codes."""
        return (
            sum(block.bytes if isinstance(block, TakenBlock) else block.nbytes for block in self._blocks)
            + self._codes.bytes
        )

    def wait_until_paged_in(self) -> None:
        """Until the codes that are being brought into memory are there."""
        self._codes.wait_until_paged_in()

    def frozen(self) -> "Vectors":
        """The vectors as they are now, which do not grow along; nothing is copied, and nothing may be appended."""
        frozen = Vectors(self.dim, self._storage)
        frozen._blocks, frozen._known = list(self._blocks), self._known.frozen()
        frozen._codes, frozen._groups, frozen._sample = self._codes, self._groups, self._sample
        return frozen

    def view(self) -> VectorsView:
        return VectorsView(tuple(self._blocks), self._known.view(), self.dim, self._codes, self._groups, self._sample)
