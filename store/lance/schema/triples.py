"""The table `triples`: a row is a triple and its vector; subject and object are numbers of phrases. A row is never replaced."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from store.fixed_point import Fixed
from store.lance.schema.vectors import Columns, Rows, vector_columns, vector_fields

TEXT_COLUMNS = ("row", "subject", "predicate", "object")
"""All columns except the vector."""


def schema(dim: int) -> pa.Schema:
    return pa.schema(
        [
            ("row", pa.int32()),
            ("subject", pa.int32()),
            ("predicate", pa.string()),
            ("object", pa.int32()),
            *vector_fields(dim),
        ]
    )


def to_columns(rows: Rows, triples: Sequence[tuple[int, str, int]], vectors: Fixed) -> Columns:
    """Returns the columns for `triples`, each (subject, predicate, object). Subject and object are values of the column `row`
    of the table `phrases`."""
    return {
        "row": rows,
        "subject": [subject for subject, _, _ in triples],
        "predicate": [predicate for _, predicate, _ in triples],
        "object": [object_ for _, _, object_ in triples],
    } | vector_columns(vectors)


def from_table(table: pa.Table, phrase_ids: NDArray[np.int32]) -> tuple[NDArray[np.int32], list[str]]:
    """Returns ends, shape (rows, 2), and predicates of a table that has `TEXT_COLUMNS`. Equal predicates are one object.

    The ends are indices into `phrase_ids`, the sorted column `row` of the table `phrases`.
    """
    ends = [np.searchsorted(phrase_ids, table[name].to_numpy()) for name in ("subject", "object")]
    shared: dict[str, str] = {}
    predicates = [shared.setdefault(text, text) for text in table["predicate"].to_pylist()]
    return np.stack(ends, axis=1).astype(np.int32), predicates
