"""The table `synonyms`: a row is a synonym edge between two phrases, with a < b. A later row with the same pair replaces it;
the score 0 removes the edge."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from store.lance.schema.vectors import Columns

SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.int32()), ("score", pa.float32()), ("commit", pa.int64())])


def to_columns(a: NDArray[np.int32], b: NDArray[np.int32], scores: NDArray[np.floating], commit: int) -> Columns:
    """Returns the columns for edges. `a` and `b` are values of the column `row` of the table `phrases`."""
    return {"a": a, "b": b, "score": scores.astype(np.float32), "commit": np.full(len(a), commit)}


def from_table(
    table: pa.Table, phrase_ids: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Returns three arrays: the first end, the second end and the score of each row, in the order of the rows.

    The ends are indices into `phrase_ids`, the sorted column `row` of the table `phrases`.
    """
    a, b = (np.searchsorted(phrase_ids, table[name].to_numpy()).astype(np.int64) for name in ("a", "b"))
    return a, b, table["score"].to_numpy().astype(np.float64)
