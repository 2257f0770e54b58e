"""The documents that contain each passage (its holders), and the triples that they supplied for it."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from store.index.columns.documents import map_passages, passages_texts, shell_table, shells
from store.index.columns.row_lists import ChangedRows, ListArrays, map_lists
from store.index.columns.texts import Texts, blocks_of, map_texts, save_blocks
from store.index.effective_triples import SuppliedTriples, needs_extraction, supplied_by_passage
from store.index.part import Part, PartFiles, PartWriter
from store.rows import Rows32
from store.types import Document

READ_DOCUMENTS = 64
"""Number of documents whose triples are cached, because the passages of one document are often read in succession."""

Held = dict[str, SuppliedTriples]
"""For each URI: the triples that the document supplied (possibly none); None if it supplied no extraction."""


class SavedHolders:
    """The holders of a checkpoint's passages. Immutable.

    An entry of `lists` is 2 * (number of a document in `documents`), plus 1 if the document supplied an extraction.
    """

    def __init__(
        self, lists: ListArrays | None = None, documents: Sequence[Document] = (), ids: Texts | None = None
    ) -> None:
        """`ids`: the ids of the passages, by row."""
        self.lists, self.documents, self.ids = lists or ListArrays(), documents, ids or Texts()
        self.n = self.lists.n
        self._read = lru_cache(READ_DOCUMENTS)(lambda number: supplied_by_passage(documents[number]))

    def __getitem__(self, row: int) -> Held:
        begin, end = self.lists.starts[row : row + 2].tolist()
        found: Held = {}
        for entry in self.lists.rows[begin:end].tolist():
            number, is_supplied = divmod(entry, 2)
            found[self.documents[number].uri] = self._read(number)[self.ids[row]] if is_supplied else None
        return found

    def select(self, rows: NDArray[np.int64], ids: Texts) -> "SavedHolders":
        """Returns the holders of the passages `rows`; `ids` are the ids of these passages."""
        return SavedHolders(self.lists.select(rows), self.documents, ids)


class Holders(ChangedRows[Held]):
    """The holders of each passage, by row. In other threads, methods that read all rows must be called on a copy."""

    _saved: SavedHolders

    def __init__(self, saved: SavedHolders | None = None) -> None:
        super().__init__(saved or SavedHolders(), {})

    def sizes(self) -> NDArray[np.int32]:
        """Returns the number of documents that contain each passage, shape (n,)."""
        out = np.zeros(self._n, np.int32)
        out[: self._saved.n] = np.diff(self._saved.lists.starts)
        for row, holders in self._changed.items():
            out[row] = len(holders)
        return out

    def needing_extraction(self) -> NDArray[np.int64]:
        """Returns the rows of the passages that the local extractor must process (`needs_extraction`), ascending."""
        lists, out = self._saved.lists, np.zeros(self._n, np.bool_)
        without = np.concatenate([[0], np.cumsum(1 - (lists.rows & 1))])
        out[: lists.n] = without[lists.starts[1:]] > without[lists.starts[:-1]]
        for row, holders in self._changed.items():
            out[row] = needs_extraction(holders)
        return np.flatnonzero(out)

    def held_by(self, documents: Mapping[str, Document]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns two arrays of passage rows, both ascending: the passages that any of `documents` contains, and among these
        the passages that other documents also contain."""
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

    def select(self, rows: NDArray[np.int64], ids: Texts) -> "Holders":
        """Returns the holders of the passages `rows` (ascending); `ids` are the ids of these passages."""
        other = Holders(self._saved.select(rows[rows < self._saved.n], ids))
        other.grow(len(rows))
        places = np.full(self._n, -1, np.int64)
        places[rows] = np.arange(len(rows))
        other._changed = {int(places[row]): held for row, held in self._changed.items() if places[row] >= 0}
        return other

    def arrays(self, numbers: Mapping[str, int]) -> ListArrays:
        """Returns all holders in the format of `SavedHolders.lists`; `numbers` maps URIs to numbers of documents."""
        saved = self._saved
        renumbered = np.fromiter((numbers.get(each.uri, -1) for each in saved.documents), np.int64)
        # A list that contained a removed document has changed, so it is not read here.
        coded = (2 * renumbered[saved.lists.rows >> 1] + (saved.lists.rows & 1)).astype(np.int32)
        changed: dict[int, Rows32 | None] = {
            row: np.array([2 * numbers[uri] + (triples is not None) for uri, triples in holders.items()], np.int32)
            for row, holders in self._changed.items()
        }
        return ListArrays(saved.lists.starts, coded, saved.lists.none).replaced(changed, self._n)


class StoredDocuments(Part):
    """The documents by URI, together with the documents that contain each passage."""

    def __init__(self, documents: dict[str, Document], holders: Holders, ids: Texts) -> None:
        """`ids`: the ids of the passages, by row."""
        self.documents, self.holders, self._ids = documents, holders, ids

    def copy(self) -> "StoredDocuments":
        return StoredDocuments(self.documents.copy(), self.holders.copy(), self._ids)

    def save(self, files: PartWriter, name: str) -> None:
        files.table(name, shell_table(self.documents))
        save_blocks(files, name, blocks_of(passages_texts(self.documents.values())))
        self.holders.arrays({uri: number for number, uri in enumerate(self.documents)}).save(files, "holders")

    def saved(self, files: PartFiles, name: str) -> None:
        """Maps the documents' passages from the files, which frees memory. The live index has the same documents."""
        map_passages(list(self.documents.values()), map_texts(files, name))

    def load(self, files: PartFiles, name: str) -> None:
        documents = shells(files.table(name), map_texts(files, name))
        self.documents.update((document.uri, document) for document in documents)
        self.holders.fill(SavedHolders(map_lists(files, "holders"), documents, self._ids))

    def map_saved(self, files: PartFiles, _name: str, saved: "StoredDocuments", /) -> None:
        lists = map_lists(files, "holders")
        self.holders.swap_in(SavedHolders(lists, list(saved.documents.values()), self._ids), saved.holders)
