"""The columns `vector` and `scale` of passages, phrases and triples: integers in fixed point, and their factor."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from store.fixed_point import Fixed, scales

Columns = dict[str, object]
"""Rows in columnar form, for `TableWriter.add_columns`."""

Rows = NDArray[np.int32]

VECTOR_COLUMNS = ("vector", "scale")


def vector_fields(dim: int) -> list[pa.Field]:
    return [pa.field("vector", pa.list_(pa.int16(), dim)), pa.field("scale", pa.float32())]


def vector_columns(vectors: Fixed) -> Columns:
    whole = np.ascontiguousarray(vectors[:, :-1])
    return {
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(whole.ravel()), whole.shape[1]),
        "scale": scales(vectors),
    }


def vectors_of(batch: pa.RecordBatch) -> Fixed:
    """Returns the vectors of a record batch in fixed point."""
    column = batch["vector"]
    whole = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, column.type.list_size)
    # `frexp` returns 0.5 · 2ᵉ for a power of two, so its exponent is one too high.
    exponents = np.frexp(batch["scale"].to_numpy(zero_copy_only=False))[1] - 1
    return np.column_stack([whole, exponents.astype(np.int16)])
