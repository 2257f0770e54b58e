"""The texts of one kind, the map from their keys to rows, and their postings, saved together."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from store.index.columns.hashed_rows import HashedRows, map_hashes, save_hashes
from store.index.columns.texts import Texts, map_texts
from store.index.part import Part, PartFiles, PartWriter
from store.index.words.postings import Postings


class KeyedTexts(Part):
    """Used for passages, phrases, triples and names of documents. A row without a key was purged; its texts must leave the
    disk."""

    def __init__(
        self,
        rows: HashedRows[Any],
        columns: Mapping[str, Texts],
        words: Mapping[str, Postings] | None = None,
    ) -> None:
        """`columns`: columns of texts, by file name. `words`: postings of indexed texts, by file name."""
        self._rows, self._columns, self._words = rows, columns, words or {}

    def copy(self) -> "KeyedTexts":
        """The caller must prevent folding of the rows until `map_saved` has run."""
        columns = {name: texts.copy() for name, texts in self._columns.items()}
        return KeyedTexts(self._rows.copy(), columns, self._words)

    def save(self, files: PartWriter, name: str) -> None:
        self._rows.fold()
        hashes = self._rows.arrays
        save_hashes(files, name, hashes)
        n = len(next(iter(self._columns.values())))
        purged = np.ones(n, np.bool_)
        purged[hashes[1]] = False
        for column, texts in self._columns.items():
            texts.save(files, column, purged)
        for column, postings in self._words.items():
            postings.save(files, column, n, purged)

    def load(self, files: PartFiles, name: str) -> None:
        self._rows.load(map_hashes(files, name))
        for column, texts in self._columns.items():
            texts.swap_in(map_texts(files, column))
        for column, postings in self._words.items():
            postings.load(files, column)

    def map_saved(self, files: PartFiles, name: str, saved: "KeyedTexts", /) -> None:
        saved._rows.load(map_hashes(files, name))
        self._rows.swap_in_fold(saved._rows)
        for column, texts in self._columns.items():
            texts.swap_in(map_texts(files, column, texts.saved.arrays))
