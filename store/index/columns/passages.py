"""The texts of the passages, by row."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.columns.texts import SelectedTexts, Texts
from store.types import PassageText


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
