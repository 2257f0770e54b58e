"""Documents of a checkpoint: what is said of each is an object, its passages stay in the checkpoint's file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import pyarrow as pa

from store.index.columns.texts import SavedTexts
from store.lance.schema import documents as schema
from store.types import Document, PassageRef

LENGTH = "length"
"""A column more in the checkpoint's table: how many passages a document has."""


class MappedRefs(Sequence[PassageRef]):
    """A document's passages, read whenever they are asked for. Equal to a tuple of the same."""

    __slots__ = ("_length", "_number", "_texts")

    def __init__(self, texts: SavedTexts, number: int, length: int) -> None:
        """Those that document `number` of `texts` has: `length` of them."""
        self._texts, self._number, self._length = texts, number, length

    @property
    def text(self) -> str:
        """As in the column `passages` of the table `documents`."""
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
    """The documents of a table with `schema.SHELL_COLUMNS`, and of the column of their passages."""
    columns = [table[name].to_pylist() for name in (LENGTH, *schema.SHELL_COLUMNS)]
    return [
        schema.from_shell(values, MappedRefs(texts, number, length) if length else ())
        for number, (length, *values) in enumerate(zip(*columns, strict=True))
    ]


def passages_texts(documents: Iterable[Document]) -> Iterator[str]:
    """The passages of each document, as the table has them."""
    for document in documents:
        refs = document.passages
        yield refs.text if isinstance(refs, MappedRefs) else schema.passages_text(refs)


def map_passages(documents: Sequence[Document], texts: SavedTexts) -> None:
    """Lets go of the documents' passages, which are what `texts` has written down of them. May run beside readers."""
    for number, document in enumerate(documents):
        if length := len(document.passages):
            # The same value in another place: nobody can tell.
            object.__setattr__(document, "passages", MappedRefs(texts, number, length))


def shell_table(documents: Mapping[str, Document]) -> pa.Table:
    """What `shells` makes documents of."""
    columns: dict[str, Any] = schema.shell_columns(list(documents.values()))
    arrays = {name: pa.array(columns[name], schema.SCHEMA.field(name).type) for name in schema.SHELL_COLUMNS}
    return pa.table(arrays | {LENGTH: pa.array((len(each.passages) for each in documents.values()), pa.int32())})
