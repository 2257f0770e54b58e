"""Documents of a checkpoint: their metadata are objects in memory, while their passages remain in the checkpoint's file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import pyarrow as pa

from store.index.columns.texts import SavedTexts
from store.lance.schema import documents as schema
from store.types import Document, PassageRef

LENGTH = "length"
"""Name of an additional column in the checkpoint's table: the number of a document's passages."""


class MappedRefs(Sequence[PassageRef]):
    """A document's passages, which each access reads from the file. Compares equal to a tuple of the same passages."""

    __slots__ = ("_length", "_number", "_texts")

    def __init__(self, texts: SavedTexts, number: int, length: int) -> None:
        """Refers to the `length` passages of the document with the given number in `texts`."""
        self._texts, self._number, self._length = texts, number, length

    @property
    def text(self) -> str:
        """Returns the passages in the format of the column `passages` of the table `documents`."""
        return self._texts[self._number]

    @overload
    def __getitem__(self, at: int) -> PassageRef: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[PassageRef]: ...

    def __getitem__(self, at: int | slice) -> PassageRef | Sequence[PassageRef]:
        return schema.passage_refs(self.text)[at]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[PassageRef]:
        return iter(schema.passage_refs(self.text))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MappedRefs | tuple) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))


def shells(table: pa.Table, texts: SavedTexts) -> list[Document]:
    """Returns the documents of a table that has `schema.SHELL_COLUMNS` and the column `LENGTH`."""
    columns = [table[name].to_pylist() for name in (LENGTH, *schema.SHELL_COLUMNS)]
    return [
        schema.from_shell(values, MappedRefs(texts, number, length) if length else ())
        for number, (length, *values) in enumerate(zip(*columns, strict=True))
    ]


def passages_texts(documents: Iterable[Document]) -> Iterator[str]:
    """Yields each document's passages in the format of the table."""
    for document in documents:
        refs = document.passages
        yield refs.text if isinstance(refs, MappedRefs) else schema.passages_text(refs)


def map_passages(documents: Sequence[Document], texts: SavedTexts) -> None:
    """Replaces the documents' passages by the equal passages in `texts`, which frees memory. Readers may run concurrently."""
    for number, document in enumerate(documents):
        if length := len(document.passages):
            # The new value equals the old one, so readers see no change.
            object.__setattr__(document, "passages", MappedRefs(texts, number, length))


def shell_table(documents: Mapping[str, Document]) -> pa.Table:
    """Returns the table from which `shells` creates the documents again."""
    columns: dict[str, Any] = schema.shell_columns(list(documents.values()))
    arrays = {name: pa.array(columns[name], schema.SCHEMA.field(name).type) for name in schema.SHELL_COLUMNS}
    return pa.table(arrays | {LENGTH: pa.array((len(each.passages) for each in documents.values()), pa.int32())})
