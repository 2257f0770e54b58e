"""The texts that the tables keep, living or not, with the keys of their new vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from store.change.load import TEXTS
from store.index.live_index import LiveIndex
from store.lance.schema import passages
from store.lance.tables import RowRange, Tables
from store.reencode.new_vectors import Key, NewVectors, key_of
from store.types import MENTION, PassageText, Triple

ROWS_AT_ONCE = 4096
"""Row numbers of a table whose texts are read at a time."""


@dataclass(frozen=True, slots=True)
class TextsToEncode:
    """Texts of one kind without a new vector, and their keys. `after`: the number after the last row that was read."""

    after: int
    keys: Sequence[Key]
    passages: Sequence[PassageText] = ()
    phrases: Sequence[str] = ()
    triples: Sequence[Triple] = ()


def contents_of(kind: str, columns: Mapping[str, Any], index: LiveIndex) -> list[Any]:
    """Returns the passages, phrases or triples of some rows. None stands for a triple whose ends a purge has just deleted."""
    if kind == "passages":
        return passages.from_table(columns)
    if kind == "phrases":
        texts: list[Any] = columns["text"].to_pylist()
        return texts
    numbers = index.ids["phrases"].view()
    ends = []
    for name in ("subject", "object"):
        wanted = columns[name].to_numpy()
        rows = np.minimum(np.searchsorted(numbers, wanted), max(len(numbers) - 1, 0))
        found = numbers[rows] == wanted if len(numbers) else np.zeros(len(wanted), np.bool_)
        ends.append([index.phrases[row] if known else None for row, known in zip(rows.tolist(), found, strict=True)])
    return [
        None if subject is None or object_ is None else (subject, predicate, object_)
        for subject, predicate, object_ in zip(ends[0], columns["predicate"].to_pylist(), ends[1], strict=True)
    ]


def key_of_content(kind: str, content: Any) -> Key | None:
    """Returns the key of a passage, phrase or triple; None for a mention edge, which has no vector."""
    if kind == "passages":
        return key_of(kind, content.id)
    if kind == "phrases":
        return key_of(kind, content)
    return None if content is None or content[1] == MENTION else key_of(kind, *content)


def texts_to_encode(
    tables: Tables, index: LiveIndex, kind: str, first: int, after: int, vectors: NewVectors
) -> TextsToEncode:
    """Returns the texts of the rows from `first` to before `after` that have no new vector yet."""
    with tables.pruning_paused():
        table = tables.read_where(kind, TEXTS[kind], RowRange(first, after))
    contents = contents_of(kind, table, index)
    keyed: dict[Key, Any] = {}
    for content in contents:
        if (key := key_of_content(kind, content)) is not None:
            keyed[key] = content
    keys = list(keyed)
    lacking = [keys[place] for place in vectors.lacking(keys)]
    return TextsToEncode(after, lacking, **{kind: [keyed[key] for key in lacking]})
