"""The documents that contain each passage, and the triples that they supplied for it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import overload

import numpy as np
from numpy.typing import NDArray

from store.index.columns.row_lists import ListArrays, Rows
from store.index.columns.texts import Texts
from store.index.effective_triples import UpstreamTriples, needs_extraction, upstream_triples
from store.types import Document

READ_DOCUMENTS = 64
"""Number of documents whose triples stay in the cache: passages of one document are often read one after another."""

Held = dict[str, UpstreamTriples]
"""By URI, the triples that a document supplied; None if it supplied none."""


class SavedHolders:
    """The holders of a checkpoint's passages. Immutable.

    An entry of `lists` is 2 * (number of the document in `documents`), plus 1 if the document supplied triples for the passage.
    """

    def __init__(
        self, lists: ListArrays | None = None, documents: Sequence[Document] = (), ids: Texts | None = None
    ) -> None:
        """`ids`: the ids of the passages, by row."""
        self.lists, self.documents, self.ids = lists or ListArrays(), documents, ids or Texts()
        self._read = lru_cache(READ_DOCUMENTS)(lambda number: upstream_triples(documents[number]))

    def __getitem__(self, row: int) -> Held:
        begin, end = self.lists.starts[row : row + 2].tolist()
        found: Held = {}
        for entry in self.lists.rows[begin:end].tolist():
            number, brought = divmod(entry, 2)
            found[self.documents[number].uri] = self._read(number)[self.ids[row]] if brought else None
        return found

    def take(self, rows: NDArray[np.int64], ids: Texts) -> "SavedHolders":
        """Returns the holders of the passages `rows`, whose ids are `ids`."""
        return SavedHolders(self.lists.take(rows), self.documents, ids)


class Holders(Sequence[Held]):
    """The holders of each passage, by row.

    One writer replaces and appends whole dictionaries. A reader in another thread sees each change completely or not at all.
    """

    def __init__(self, saved: SavedHolders | None = None) -> None:
        self._saved = saved or SavedHolders()
        self._changed: dict[int, Held] = {}
        self._n = self._saved.lists.n

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, row: int) -> Held: ...

    @overload
    def __getitem__(self, row: slice) -> list[Held]: ...

    def __getitem__(self, row: int | slice) -> Held | list[Held]:
        if isinstance(row, slice):
            return [self[at] for at in range(*row.indices(len(self)))]
        # `_changed` first: `swap_in` replaces `_saved` before it empties the dict.
        changed, saved = self._changed, self._saved
        found = changed.get(row)
        if found is not None:
            return found
        if not 0 <= row < saved.lists.n:
            raise IndexError(row)
        return saved[row]

    def __setitem__(self, row: int, holders: Held) -> None:
        self._changed[row] = holders

    def __iter__(self) -> Iterator[Held]:
        return map(self.__getitem__, range(self._n))

    def append(self, holders: Held) -> None:
        self._changed[self._n] = holders
        self._n += 1

    def extend(self, holders: Iterable[Held]) -> None:
        for each in holders:
            self.append(each)

    def copy(self) -> "Holders":
        """Returns an independent copy. O(changes since the checkpoint)."""
        other = Holders(self._saved)
        other._changed, other._n = self._changed.copy(), self._n
        return other

    def sizes(self) -> NDArray[np.int32]:
        """Returns the number of documents that contain each passage, shape (n,)."""
        out = np.zeros(self._n, np.int32)
        out[: self._saved.lists.n] = np.diff(self._saved.lists.starts)
        for row, holders in self._changed.items():
            out[row] = len(holders)
        return out

    def needing_extraction(self) -> NDArray[np.int64]:
        """Returns the rows of the passages that the local extractor must process (`needs_extraction`), ascending."""
        lists, out = self._saved.lists, np.zeros(self._n, np.bool_)
        without = np.concatenate([[0], np.cumsum(1 - (lists.rows & 1))])
        out[: lists.n] = without[lists.starts[1:]] > without[lists.starts[:-1]]
        for row, holders in self._changed.copy().items():
            if row < len(out):
                out[row] = needs_extraction(holders)
        return np.flatnonzero(out)

    def held_by(self, documents: Mapping[str, Document]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the rows of the passages in any of `documents`, ascending, and those of them that other documents contain
        too."""
        lists = self._saved.lists
        uris = map(attrgetter("uri"), self._saved.documents)
        chosen = np.fromiter(map(documents.__contains__, uris), np.bool_, len(self._saved.documents))
        inside = np.concatenate([[0], np.cumsum(chosen[lists.rows >> 1])])
        some, many = np.zeros(self._n, np.int64), self.sizes()
        some[: lists.n] = inside[lists.starts[1:]] - inside[lists.starts[:-1]]
        for row, holders in self._changed.items():
            some[row] = sum(uri in documents for uri in holders)
        held = np.flatnonzero(some)
        return held, held[some[held] < many[held]]

    def take(self, rows: NDArray[np.int64], ids: Texts) -> "Holders":
        """Returns the holders of the passages `rows`, ascending, whose ids are `ids`."""
        known = rows[rows < self._saved.lists.n]
        other = Holders(self._saved.take(known, ids))
        other._n = len(rows)
        places = np.full(self._n, -1, np.int64)
        places[rows] = np.arange(len(rows))
        changed = {int(places[row]): holders for row, holders in self._changed.items()}
        changed.pop(-1, None)
        other._changed = changed
        return other

    def arrays(self, numbers: Mapping[str, int]) -> ListArrays:
        """Returns all holders in the format of `SavedHolders.lists`; `numbers` are the documents' numbers, by URI."""
        saved = self._saved
        renumbered = np.fromiter((numbers.get(each.uri, -1) for each in saved.documents), np.int64)
        # Each list that contained a removed document has changed, so it is not read here.
        coded = (2 * renumbered[saved.lists.rows >> 1] + (saved.lists.rows & 1)).astype(np.int32)
        changed: dict[int, Rows | None] = {
            row: np.array([2 * numbers[uri] + (triples is not None) for uri, triples in holders.items()], np.int32)
            for row, holders in self._changed.items()
        }
        return ListArrays(saved.lists.starts, coded, saved.lists.none).replaced(changed, self._n)

    def swap_in(self, saved: SavedHolders, captured: "Holders") -> None:
        """Replaces the holders in `captured`, an earlier `copy`, with those in `saved`, the files written from it."""
        later = {row: held for row, held in self._changed.items() if captured._changed.get(row) is not held}
        self._saved = saved
        self._changed = later
