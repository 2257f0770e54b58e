"""The names of documents (`store.links.names.names_text`), by row."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from store.index.append_only_arrays import Counts
from store.index.columns.hashed_rows import TextRows
from store.index.columns.keyed_texts import KeyedTexts
from store.index.columns.texts import SelectedTexts, Texts
from store.index.file_arrays import IN_MEMORY, ArrayStorage
from store.index.part import Part
from store.index.triple_change import CountChange
from store.index.words.postings import Postings, SelectedPostings


class IndexedNames:
    """The name texts: the row of each text, its words, and a count per row. The row of a text that no document uses any more is
    not reused.

    The count of a row is the sum of its entries in the matrix `naming`. Commits remove texts from `rows`, so each index has its
    own.
    """

    def __init__(self, storage: ArrayStorage) -> None:
        self.texts = Texts()
        self.rows = TextRows(self.texts, storage)
        self.postings = Postings(storage=storage)
        self.counts = Counts()

    def __len__(self) -> int:
        return len(self.texts)

    def add(self, texts: Iterable[str]) -> None:
        """Appends names; no passage has these names yet."""
        for row, text in enumerate(texts, len(self)):
            self.texts.append(text)
            self.postings.extend(row, text)
            self.rows[text] = row
        self.counts.grow(len(self))

    def change(self, change: CountChange) -> None:
        """Changes counts, and removes texts that no document uses any more from `rows`."""
        _, alive = self.counts.change(*change)
        self.rows.discard(change[0][~alive].tolist())

    def copy(self) -> "IndexedNames":
        """Returns an independent copy that shares the texts and words of the existing rows."""
        other, n = IndexedNames(IN_MEMORY), len(self)
        other.texts = SelectedTexts(self.texts, range(n))
        other.rows = self.rows.copy_for(other.texts)
        other.postings, other.counts = SelectedPostings(self.postings, np.arange(n), n), self.counts.copy()
        return other

    def fill_from(self, other: "IndexedNames", rows: NDArray[np.int64], n: int) -> None:
        """Copies the names in `rows`, in this order, from the first `n` names of `other`; no passage has these names yet."""
        self.postings = SelectedPostings(other.postings, rows, n)
        self.texts.extend(other.texts[row] for row in rows.tolist())
        for row, text in enumerate(self.texts):
            self.rows[text] = row
        self.counts.grow(len(self))

    def parts(self) -> list[tuple[str, Part]]:
        """Returns the parts in the form of `store.index.live_index.LiveIndex.parts`."""
        texts = KeyedTexts(self.rows, {"names": self.texts}, {"name-postings": self.postings})
        return [("names", texts), ("names-counts", self.counts)]
