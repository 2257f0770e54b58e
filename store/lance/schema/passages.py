"""The table `passages`: a row is a passage's text and vector. A row is never replaced."""

from collections.abc import Sequence

import pyarrow as pa

from store.fixed_point import Fixed
from store.lance.schema.vectors import Columns, Rows, vector_columns, vector_fields
from store.types import PassageText

TEXT_COLUMNS = ("row", "id", "title", "text")
"""All columns except the vector."""


def schema(dim: int) -> pa.Schema:
    return pa.schema(
        [
            ("row", pa.int32()),
            ("id", pa.string()),
            ("title", pa.string()),
            ("text", pa.string()),
            *vector_fields(dim),
        ]
    )


def to_columns(rows: Rows, passages: Sequence[PassageText], vectors: Fixed) -> Columns:
    return {
        "row": rows,
        "id": [passage.id for passage in passages],
        "title": [passage.title for passage in passages],
        "text": [passage.text for passage in passages],
    } | vector_columns(vectors)


def from_table(table: pa.Table) -> list[PassageText]:
    """Returns the passages of a table that has `TEXT_COLUMNS`, in the order of its rows."""
    columns = zip(*(table[name].to_pylist() for name in ("id", "title", "text")), strict=True)
    return [PassageText(*column) for column in columns]
