"""Arrays that one writer lengthens while readers hold views of their beginning.

A reader's view never changes: what is appended lies behind it, and where values inside it change (`Counts`), the chunk
is copied before the first change after a view was taken. So a snapshot costs what changed, not what is there.
"""

from collections.abc import Sequence
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from store.index.file_arrays import IN_MEMORY, Room
from store.index.quantised.groups import QuantisedGroups
from store.index.quantised.sample import RowSample, SampledRows
from store.index.vector_codes import CodedBlock, VectorCodes

Scalar = TypeVar("Scalar", bound=np.generic)

CHUNK_COUNTS = 4096
"""Entries a chunk of `Counts`: 16 kB copied for each chunk that a commit touches."""

SPARE_SHARE = 8
"""Of loaded values this part again is left free behind them."""

BLOCK_VECTORS = 16384
"""Vectors a block of `Vectors`: 25 MB at 384 float32, small enough to allocate without a pause."""

ORDERED_ROWS = 1024
"""Rows from which on it pays to ask whether they are in order: then each block's are taken at once."""


class GrowableArray(Generic[Scalar]):
    """An append-only array, shape (n,) or (n, width). Capacity doubles, so appending costs O(1) amortised."""

    def __init__(self, dtype: type[Scalar], width: int | None = None, room: Room = IN_MEMORY) -> None:
        """`room`: where a long one lies."""
        self._width = width
        self._room = room
        self._data: NDArray[Scalar] = np.empty((64,) if width is None else (64, width), dtype)
        self.n = 0

    def extend(self, values: NDArray[Any] | Sequence[Any]) -> None:
        added = np.asarray(values, dtype=self._data.dtype)
        if self._width is not None:
            added = added.reshape(-1, self._width)
        end = self.n + len(added)
        if end > len(self._data):
            # Views keep the old buffer alive; they are never written through.
            size = max(end, 2 * len(self._data)), *self._data.shape[1:]
            longer = self._room.empty(size, self._data.dtype)
            longer[: self.n] = self._data[: self.n]
            self._data = longer
        self._data[self.n : end] = added
        self.n = end

    def load(self, values: NDArray[Any]) -> None:
        """Takes over saved values at opening, with room for more, so that the first that comes does not copy all."""
        size = len(values) + len(values) // SPARE_SHARE + 64, *self._data.shape[1:]
        self._data = self._room.empty(size, self._data.dtype)
        self._data[: len(values)] = values
        self.n = len(values)

    def put(self, rows: NDArray[Any] | int, values: Any) -> None:
        """Changes what is there: for arrays of which nobody holds a view."""
        self._data[rows] = values

    def view(self) -> NDArray[Scalar]:
        """The array as it is now, read-only."""
        seen = self._data[: self.n]
        seen.flags.writeable = False
        return seen

    def frozen(self) -> "GrowableArray[Scalar]":
        """The array as it is now, which does not grow along; nothing is copied, and nothing may be appended."""
        frozen = GrowableArray(self._data.dtype.type, self._width, self._room)
        frozen._data, frozen.n = self._data[: self.n], self.n
        return frozen


class CountsView:
    """Integer counts as of one commit. `array()` is built at first use and kept."""

    __slots__ = ("_array", "_chunks", "n")

    def __init__(self, chunks: tuple[NDArray[np.int32], ...], n: int) -> None:
        self._chunks = chunks
        self.n = n
        self._array: NDArray[np.int32] | None = None

    def array(self) -> NDArray[np.int32]:
        """All counts, shape (n,), int32, read-only."""
        if self._array is None:
            whole = np.concatenate(self._chunks)[: self.n] if self._chunks else np.empty(0, np.int32)
            whole.flags.writeable = False
            self._array = whole
        return self._array

    def __getitem__(self, index: int) -> int:
        return int(self._chunks[index // CHUNK_COUNTS][index % CHUNK_COUNTS])


class Counts:
    """Integer counts that grow and change; copy-on-write by chunk."""

    def __init__(self) -> None:
        self._chunks: list[NDArray[np.int32]] = []
        self._shared: list[bool] = []
        self.n = 0

    def grow(self, n: int) -> None:
        """Lengthens to `n` entries, the new ones zero."""
        while len(self._chunks) * CHUNK_COUNTS < n:
            self._chunks.append(np.zeros(CHUNK_COUNTS, np.int32))
            self._shared.append(False)
        self.n = max(self.n, n)

    def add(self, index: int, change: int) -> int:
        """Adds `change` to one count and returns the new value."""
        chunk, offset = divmod(index, CHUNK_COUNTS)
        if self._shared[chunk]:
            self._chunks[chunk] = self._chunks[chunk].copy()
            self._shared[chunk] = False
        self._chunks[chunk][offset] += change
        return int(self._chunks[chunk][offset])

    def load(self, values: NDArray[np.int32]) -> None:
        """Takes over whole counts at opening."""
        self.grow(len(values))
        for chunk, start in enumerate(range(0, len(values), CHUNK_COUNTS)):
            part = values[start : start + CHUNK_COUNTS]
            self._chunks[chunk][: len(part)] = part

    def __getitem__(self, index: int) -> int:
        return int(self._chunks[index // CHUNK_COUNTS][index % CHUNK_COUNTS])

    def view(self) -> CountsView:
        self._shared = [True] * len(self._chunks)
        return CountsView(tuple(self._chunks), self.n)


def _block(dim: int, room: Room) -> NDArray[np.float32]:
    """Place for `BLOCK_VECTORS` vectors in `room`, or in memory pages of its own.

    They take no memory before they are written to, and none once the last view of them is gone. The C library would give only
    the first such blocks so, and later ones from a heap, which does not give memory back.
    """
    if room is not IN_MEMORY:
        return room.empty((BLOCK_VECTORS, dim), np.float32)
    pages = mmap(-1, BLOCK_VECTORS * dim * np.dtype(np.float32).itemsize, flags=MAP_PRIVATE | MAP_ANONYMOUS)
    return np.frombuffer(pages, np.float32).reshape(BLOCK_VECTORS, dim)


def _not_zero(vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which rows have a component that is not zero, shape (len(vectors),)."""
    found: NDArray[np.bool_] = (vectors != 0).any(axis=1)
    return found


class VectorsView:
    """Vectors as of one commit, rows L2-normalised or zero."""

    __slots__ = ("_blocks", "_codes", "_groups", "_sample", "dim", "known", "n")

    def __init__(
        self,
        blocks: tuple[NDArray[np.float32], ...],
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

    def blocks(self) -> list[tuple[int, NDArray[np.float32]]]:
        """(first row, vectors) for each block, in row order."""
        starts = range(0, self.n, BLOCK_VECTORS)
        return [(start, block[: self.n - start]) for start, block in zip(starts, self._blocks, strict=False)]

    def coded_blocks(self) -> list[tuple[int, CodedBlock]]:
        """(first row, codes) for each block, in row order. O(rows that were never asked for), for all views together."""
        coded = self._codes.blocks(self._blocks, self.n, BLOCK_VECTORS)
        return list(zip(range(0, self.n, BLOCK_VECTORS), coded, strict=True))

    def groups(self) -> list[Any]:
        """The groups (`store.index.quantised.groups`) that are there, from the first row on."""

        def coded(rows: int) -> list[CodedBlock]:
            return self._codes.blocks(self._blocks, rows, BLOCK_VECTORS)

        return self._groups.made(self.n, coded)

    def wait_for_groups(self) -> None:
        """Until all groups are there that can be."""
        self.groups()
        self._groups.wait()

    def sample(self, living: int) -> list[SampledRows]:
        """Some of the rows with their codes, where `living` of them live: `store.index.quantised.sample`."""
        return self._sample.of([block for _, block in self.coded_blocks()], living, BLOCK_VECTORS)

    def scores(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosine of every row with `query` (shape (dim,)), shape (n,)."""
        out = np.empty(self.n, np.float32)
        for start, block in self.blocks():
            np.dot(block, query, out=out[start : start + len(block)])
        return out

    def rows(
        self, rows: NDArray[np.integer[Any]] | Sequence[int], out: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """The vectors of `rows`, shape (len(rows), dim), copied; to `out` where it is given."""
        wanted = np.asarray(rows, dtype=np.int64)
        if out is None:
            out = np.empty((len(wanted), self.dim), np.float32)
        if len(wanted) >= ORDERED_ROWS and wanted[0] >= 0 and wanted[-1] < self.n and (wanted[1:] >= wanted[:-1]).all():
            first = range(0, self.n + BLOCK_VECTORS, BLOCK_VECTORS)
            ends = np.searchsorted(wanted, first).tolist()
            for start, block, begin, end in zip(first, self._blocks, ends, ends[1:], strict=False):
                # None is outside; numpy would copy once more to be able to say so.
                np.take(block, wanted[begin:end] - start, axis=0, out=out[begin:end], mode="clip")
            return out
        block_of = wanted // BLOCK_VECTORS
        for block in np.unique(block_of):
            here = block_of == block
            out[here] = self._blocks[block][wanted[here] % BLOCK_VECTORS]
        return out


class Vectors:
    """An append-only matrix of vectors in blocks: growing never copies what is there."""

    def __init__(self, dim: int, room: Room = IN_MEMORY) -> None:
        self.dim = dim
        self._room = room
        self._blocks: list[NDArray[np.float32]] = []
        self._known = GrowableArray(np.bool_)
        self._codes = VectorCodes(dim, room)
        self._groups = QuantisedGroups(dim)
        self._sample = RowSample()

    @property
    def n(self) -> int:
        return self._known.n

    def extend(self, vectors: NDArray[np.float32]) -> None:
        done = 0
        while done < len(vectors):
            offset = self.n % BLOCK_VECTORS
            if offset == 0:
                self._blocks.append(_block(self.dim, self._room))
            part = vectors[done : done + BLOCK_VECTORS - offset]
            self._blocks[-1][offset : offset + len(part)] = part
            self._known.extend(_not_zero(part))
            done += len(part)

    def extend_from(self, other: VectorsView, rows: NDArray[np.int64]) -> None:
        """Appends `rows` of `other`."""
        done = 0
        while done < len(rows):
            offset = self.n % BLOCK_VECTORS
            if offset == 0:
                self._blocks.append(_block(self.dim, self._room))
            part = rows[done : done + BLOCK_VECTORS - offset]
            other.rows(part, out=self._blocks[-1][offset : offset + len(part)])
            self._known.extend(other.known[part])
            done += len(part)

    def put(self, rows: NDArray[np.integer[Any]], vectors: NDArray[np.float32]) -> None:
        """Writes `vectors` at `rows`, which may lie behind the end: for filling at opening, in whatever order they come.

        What lies between and is never written is undefined.
        """
        if not len(rows):
            return
        self._known.extend(np.zeros(max(int(rows.max()) + 1 - self.n, 0)))
        self._known.put(rows, _not_zero(vectors))
        while len(self._blocks) * BLOCK_VECTORS < self.n:
            self._blocks.append(_block(self.dim, self._room))
        block_of = rows // BLOCK_VECTORS
        for block in np.unique(block_of):
            here = block_of == block
            self._blocks[block][rows[here] % BLOCK_VECTORS] = vectors[here]

    def load(
        self,
        blocks: Sequence[NDArray[np.float32]],
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
            last = _block(self.dim, self._room)
            last[: n % BLOCK_VECTORS] = blocks[-1][: n % BLOCK_VECTORS]
            self._blocks[-1] = last

    def adopt(self, block: int, saved: NDArray[np.float32], codes: CodedBlock | None = None) -> None:
        """Takes a whole block, and its codes where there are some, from where they were written."""
        self._blocks[block] = saved
        if codes is not None:
            self._codes.adopt(block, codes)

    def frozen(self) -> "Vectors":
        """The vectors as they are now, which do not grow along; nothing is copied, and nothing may be appended."""
        frozen = Vectors(self.dim, self._room)
        frozen._blocks, frozen._known = list(self._blocks), self._known.frozen()
        frozen._codes, frozen._groups, frozen._sample = self._codes, self._groups, self._sample
        return frozen

    def view(self) -> VectorsView:
        return VectorsView(tuple(self._blocks), self._known.view(), self.dim, self._codes, self._groups, self._sample)
