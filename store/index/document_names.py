"""The names of documents (`store.links.names.names_text`), by row."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from store.index.append_only_arrays import Counts
from store.index.columns.hashed_rows import TextRows
from store.index.columns.keyed_texts import KeyedTexts
from store.index.columns.texts import TakenTexts, Texts
from store.index.file_arrays import IN_MEMORY, ArrayStorage
from store.index.part import Part
from store.index.triple_change import CountChange
from store.index.words.postings import Postings
from store.index.words.taken_postings import TakenPostings


class IndexedNames:
    """Texts, the rows of texts, words, and counts. A row that no document uses any more is not reused.

    A count is the sum of a row's entries in the matrix `naming`. Commits remove texts from `rows`, so every index has its own.
    """

    def __init__(self, storage: ArrayStorage) -> None:
        self.texts = Texts()
        self.rows = TextRows(self.texts, storage)
        self.postings = Postings(storage=storage)
        self.counts = Counts()

    def __len__(self) -> int:
        return len(self.texts)

    def add(self, texts: Iterable[str]) -> None:
        """Appends names; no passage has them yet."""
        for row, text in enumerate(texts, len(self)):
            self.texts.append(text)
            self.postings.extend(row, text)
            self.rows[text] = row
        self.counts.grow(len(self))

    def change(self, change: CountChange) -> None:
        """Changes counts, and removes the texts that no document has any more from `rows`."""
        _, alive = self.counts.change(*change)
        self.rows.discard(change[0][~alive].tolist())

    def copy(self) -> "IndexedNames":
        """Returns an independent copy that shares the texts and words of the present rows."""
        other, n = IndexedNames(IN_MEMORY), len(self)
        other.texts = TakenTexts(self.texts, range(n))
        other.rows = self.rows.copy_for(other.texts)
        other.postings, other.counts = TakenPostings(self.postings, np.arange(n), n), self.counts.copy()
        return other

    def take(self, other: "IndexedNames", rows: NDArray[np.int64], n: int) -> None:
        """Takes the names in `rows` among the first `n` of `other`, in this order; no passage has them yet."""
        self.postings = TakenPostings(other.postings, rows, n)
        self.texts.extend(other.texts[row] for row in rows.tolist())
        for row, text in enumerate(self.texts):
            self.rows[text] = row
        self.counts.grow(len(self))

    def parts(self) -> list[tuple[str, Part]]:
        """Returns the parts, as `store.index.live_index.LiveIndex.parts` does."""
        texts = KeyedTexts(self.rows, {"names": self.texts}, {"name-postings": self.postings})
        return [("names", texts), ("names-counts", self.counts)]
