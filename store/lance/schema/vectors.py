"""The column `vector` of passages, phrases and triples: float16, which holds what is kept of a vector exactly
(`store.fixed_point`)."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from store.fixed_point import Fixed, floats

Columns = dict[str, object]
"""Rows by column, as `Tables.append` takes them."""

Rows = NDArray[np.int32]


def vector_field(dim: int) -> pa.Field:
    return pa.field("vector", pa.list_(pa.float16(), dim))


def vector_column(vectors: Fixed) -> pa.Array:
    """Vectors, shape (rows, dim), as Lance's fixed-size lists."""
    return pa.FixedSizeListArray.from_arrays(pa.array(floats(vectors).astype(np.float16).ravel()), vectors.shape[1])


def vectors_of(batch: pa.RecordBatch, dim: int) -> NDArray[np.float32]:
    """The vectors of a record batch, shape (rows, dim)."""
    flat = batch["vector"].flatten().to_numpy(zero_copy_only=False)
    vectors: NDArray[np.float32] = flat.astype(np.float32, copy=False).reshape(-1, dim)
    return vectors
