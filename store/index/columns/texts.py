"""Texts and passages by row: older texts are mapped from a checkpoint's files, later texts are strings."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from store.index.part import PartFiles, PartWriter
from store.types import PassageText

BLOCK_TEXTS = 1 << 15
"""Number of texts in one block. Full blocks never change, so a checkpoint links the full blocks of the previous checkpoint."""

TextArrays = tuple[NDArray[np.int64], NDArray[np.uint8]]
"""Texts as UTF-8: text number `i` is `octets[starts[i]:starts[i + 1]]`, so `starts` has one more entry than there are texts."""


def text_arrays(texts: Iterable[str]) -> TextArrays:
    encoded = [text.encode() for text in texts]
    starts = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=starts[1:])
    return starts, np.frombuffer(b"".join(encoded), np.uint8)


def blocks_of(texts: Iterator[str]) -> Iterator[TextArrays]:
    """Yields blocks of `BLOCK_TEXTS` texts as arrays; the last block may have fewer texts."""
    while part := list(islice(texts, BLOCK_TEXTS)):
        yield text_arrays(part)


def save_blocks(files: PartWriter, name: str, blocks: Iterator[TextArrays]) -> None:
    """Writes blocks of texts. Full blocks never change."""
    for number, (starts, octets) in enumerate(blocks):
        full = len(starts) > BLOCK_TEXTS
        files.array(f"{name}-text-{number:05d}", octets, immutable=full)
        files.array(f"{name}-text-starts-{number:05d}", starts, immutable=full)


def map_texts(files: PartFiles, name: str, known: Sequence[TextArrays] = ()) -> "SavedTexts":
    """Maps texts; uses the arrays of `known` that are mapped from the same files."""
    blocks = []
    for number in range(files.count(f"{name}-text-starts")):
        starts, octets = known[number] if number < len(known) else (None, None)
        blocks.append(
            (
                files.array(f"{name}-text-starts-{number:05d}", starts),
                files.array(f"{name}-text-{number:05d}", octets),
            )
        )
    return SavedTexts(blocks)


class SavedTexts:
    """Texts in blocks of `BLOCK_TEXTS` texts; the last block may have fewer. Immutable."""

    __slots__ = ("_blocks", "arrays", "n")

    def __init__(self, arrays: Sequence[TextArrays] = ()) -> None:
        self.arrays = tuple(arrays)
        # Indexing a memory view is several times as fast as indexing an array.
        self._blocks = [(starts.data, octets.data) for starts, octets in arrays]
        self.n = sum(len(starts) - 1 for starts, _ in arrays)

    def __getitem__(self, row: int) -> str:
        starts, octets = self._blocks[row // BLOCK_TEXTS]
        at = row % BLOCK_TEXTS
        return str(octets[starts[at] : starts[at + 1]], "utf-8")


class Texts(Sequence[str]):
    """A sequence of texts. One writer appends; a reader in another thread sees all texts present when its read began."""

    def __init__(self, saved: SavedTexts | None = None) -> None:
        self._parts: tuple[SavedTexts, list[str]] = saved or SavedTexts(), []

    def __len__(self) -> int:
        saved, later = self._parts
        return saved.n + len(later)

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> list[str]: ...

    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self[at] for at in range(*row.indices(len(self)))]
        saved, later = self._parts
        if row < 0:
            row += saved.n + len(later)
        return saved[row] if row < saved.n else later[row - saved.n]

    def __iter__(self) -> Iterator[str]:
        saved, later = self._parts
        yield from map(saved.__getitem__, range(saved.n))
        yield from later

    def append(self, text: str) -> None:
        self._parts[1].append(text)

    def extend(self, texts: Iterable[str]) -> None:
        self._parts[1].extend(texts)

    def swap_in(self, saved: SavedTexts) -> None:
        """Replaces the first texts by the equal texts in `saved`, which are mapped from the checkpoint's files."""
        self._parts = saved, self[saved.n :]

    def save(self, files: PartWriter, name: str, forgotten: NDArray[np.bool_]) -> None:
        """Writes all texts; the texts of the rows in the mask `forgotten` are replaced by empty texts."""
        save_blocks(files, name, self.blocks(forgotten))

    def copy(self) -> "Texts":
        """Returns an independent copy. Takes O(texts added since the checkpoint) time."""
        saved, later = self._parts
        other = Texts(saved)
        other._parts[1].extend(later)
        return other

    @property
    def saved(self) -> SavedTexts:
        """Returns the texts mapped from the checkpoint."""
        return self._parts[0]

    def blocks(self, forgotten: NDArray[np.bool_] | None = None) -> Iterator[TextArrays]:
        """Yields all texts in blocks of `BLOCK_TEXTS`, as arrays. Full blocks of the checkpoint are not copied.

        `forgotten`: mask of the rows whose texts are replaced by empty texts.
        """
        saved, later = self._parts
        whole = saved.n // BLOCK_TEXTS
        for number in range(-(-(saved.n + len(later)) // BLOCK_TEXTS)):
            part = slice(number * BLOCK_TEXTS, (number + 1) * BLOCK_TEXTS)
            gone = np.flatnonzero(forgotten[part]) if forgotten is not None else np.empty(0, np.int64)
            if number < whole:
                starts, _ = saved.arrays[number]
                if not (starts[gone + 1] > starts[gone]).any():
                    yield saved.arrays[number]
                    continue
            texts = self[part]
            for at in gone.tolist():
                texts[at] = ""
            yield text_arrays(texts)


class SelectedTexts(Texts):
    """A selection of another column's texts, followed by texts appended to this object."""

    def __init__(self, whole: Sequence[str], rows: NDArray[np.integer[Any]] | range) -> None:
        """`rows`: the selected rows of `whole`, in this order."""
        super().__init__(_SelectedSaved(whole, rows))


class _SelectedSaved(SavedTexts):
    __slots__ = ("_rows", "_whole")

    def __init__(self, whole: Sequence[str], rows: NDArray[np.integer[Any]] | range) -> None:
        super().__init__()
        # Indexing a memory view is several times as fast as indexing an array, as in `SavedTexts`.
        self._rows = rows if isinstance(rows, range) else np.ascontiguousarray(rows).data
        self._whole, self.n = whole, len(rows)

    def __getitem__(self, row: int) -> str:
        return self._whole[self._rows[row]]


class Passages:
    """`PassageText` by row; ids, titles and texts are separate columns."""

    def __init__(self, ids: Texts | None = None, titles: Texts | None = None, texts: Texts | None = None) -> None:
        self.ids, self.titles, self.texts = ids or Texts(), titles or Texts(), texts or Texts()

    def __len__(self) -> int:
        return len(self.texts)  # the last column that `append` extends

    def __getitem__(self, row: int) -> PassageText:
        return PassageText(self.ids[row], self.titles[row], self.texts[row])

    def __iter__(self) -> Iterator[PassageText]:
        return map(PassageText, self.ids, self.titles, self.texts)

    def append(self, passage: PassageText) -> None:
        self.ids.append(passage.id)
        self.titles.append(passage.title)
        self.texts.append(passage.text)

    def select(self, rows: NDArray[np.integer[Any]] | range) -> "Passages":
        """Returns the passages in `rows`, in this order."""
        return Passages(*(SelectedTexts(texts, rows) for texts in (self.ids, self.titles, self.texts)))
