"""The table `phrases`: a row is a normalised phrase and its vector. A row is never replaced."""

from collections.abc import Sequence

import pyarrow as pa

from store.fixed_point import Fixed
from store.lance.schema.vectors import Columns, Rows, vector_columns, vector_fields

TEXT_COLUMNS = ("row", "text")
"""All columns except the vector."""


def schema(dim: int) -> pa.Schema:
    return pa.schema([("row", pa.int32()), ("text", pa.string()), *vector_fields(dim)])


def to_columns(rows: Rows, phrases: Sequence[str], vectors: Fixed) -> Columns:
    return {"row": rows, "text": list(phrases)} | vector_columns(vectors)


def from_table(table: pa.Table) -> list[str]:
    """Returns the phrases of a table that has `TEXT_COLUMNS`, in the order of its rows."""
    phrases: list[str] = table["text"].to_pylist()
    return phrases
