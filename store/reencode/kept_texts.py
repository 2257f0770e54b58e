"""The texts that the store keeps, living or not, with the keys of their new vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from store.index.live_index import LiveIndex
from store.reencode.new_vectors import Key, NewVectors, key_of
from store.types import MENTION, PassageText, Triple

ROWS_AT_ONCE = 4096
"""Row numbers of a table whose texts are looked up at a time."""


@dataclass(frozen=True, slots=True)
class TextsToEncode:
    """Texts of one kind without a new vector, and their keys. `after`: the number after the last row that was read."""

    after: int
    keys: Sequence[Key]
    passages: Sequence[PassageText] = ()
    phrases: Sequence[str] = ()
    triples: Sequence[Triple] = ()


def content_of(index: LiveIndex, kind: str, row: int) -> Any:
    """Returns the passage, phrase or triple of a row of the index."""
    if kind == "passages":
        return index.passages[row]
    return index.phrases[row] if kind == "phrases" else index.triple(row)


def key_of_content(kind: str, content: Any) -> Key | None:
    """Returns the key of a passage, phrase or triple; None for a mention edge, which has no vector."""
    if kind == "passages":
        return key_of(kind, content.id)
    if kind == "phrases":
        return key_of(kind, content)
    return None if content[1] == MENTION else key_of(kind, *content)


def texts_to_encode(index: LiveIndex, kind: str, first: int, after: int, vectors: NewVectors) -> TextsToEncode:
    """Returns the texts of a table's rows from `first` to before `after` that have no new vector yet."""
    keyed: dict[Key, Any] = {}
    for row in range(*np.searchsorted(index.ids[kind].view(), (first, after)).tolist()):
        content = content_of(index, kind, row)
        key = key_of_content(kind, content)
        if key is not None and _row_of(index, kind, content) == row:  # a purged text has no row, or a later one
            keyed[key] = content
    keys = list(keyed)
    lacking = [keys[place] for place in vectors.lacking(keys)]
    return TextsToEncode(after, lacking, **{kind: [keyed[key] for key in lacking]})


def _row_of(index: LiveIndex, kind: str, content: Any) -> int | None:
    if kind == "passages":
        return index.passage_rows.get(content.id)
    return index.phrase_rows.get(content) if kind == "phrases" else index.triple_row(content)
