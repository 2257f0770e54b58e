"""The column `vector` of passages, phrases and triples."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from store.types import Vector

Columns = dict[str, object]
"""Rows by column, as `Tables.append` takes them."""

Rows = NDArray[np.int32]


def vector_field(dim: int) -> pa.Field:
    return pa.field("vector", pa.list_(pa.float32(), dim))


def vector_column(vectors: Sequence[Vector], dim: int) -> pa.Array:
    """Vectors, each of shape (dim,), as Lance's fixed-size lists."""
    flat = np.concatenate(vectors) if len(vectors) else np.empty(0, np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.astype(np.float32, copy=False)), dim)


def vectors_of(batch: pa.RecordBatch, dim: int) -> NDArray[np.float32]:
    """The vectors of a record batch, shape (rows, dim)."""
    flat: NDArray[np.float32] = batch["vector"].flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(-1, dim)
