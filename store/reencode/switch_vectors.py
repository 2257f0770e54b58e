"""Writes the new vectors into the tables. The commit that makes them valid is `Store.switch_encoder`'s."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from store.errors import NotEncoded
from store.fixed_point import fixed
from store.index.live_index import LiveIndex
from store.lance.schema import synonyms
from store.lance.schema.vectors import VECTOR_COLUMNS, vector_columns, vector_fields
from store.lance.table_writer import TableWriter
from store.reencode.kept_texts import KINDS, contents_of, key_of_content
from store.reencode.new_vectors import NewVectors


def rewrite_tables(tables: TableWriter, index: LiveIndex, vectors: NewVectors) -> None:
    """Rewrites passages, phrases and triples with the new vectors, and empties the synonym edges.

    `index` is of the present tables. Raises NotEncoded if a text has no new vector. O(tables), in batches.
    """
    for kind in KINDS:
        others = [field for field in tables.before.columns(kind) if field.name not in VECTOR_COLUMNS]
        schema = pa.schema([*others, *vector_fields(vectors.target.dim)])
        lacking: list[NotEncoded] = []
        try:
            tables.replace_rows(kind, schema, partial(_with_new_vectors, kind, index, vectors, lacking))
        except (OSError, RuntimeError, ValueError) as error:  # by Lance, for any error of the conversion
            raise (lacking[0] if lacking else error) from None
    tables.replace_rows("synonyms", synonyms.SCHEMA, _no_rows)


def _with_new_vectors(
    kind: str, index: LiveIndex, vectors: NewVectors, lacking: list[NotEncoded], batch: pa.RecordBatch
) -> Mapping[str, object]:
    contents = contents_of(kind, batch, index)
    keys = [key_of_content(kind, content) for content in contents]
    vectorless = np.array([key is None for key in keys], np.bool_)
    found = np.repeat(fixed(np.zeros((1, vectors.target.dim), np.float32)), len(keys), axis=0)
    try:
        found[~vectorless] = vectors.take([key for key in keys if key is not None])
    except NotEncoded as error:
        lacking.append(error)
        raise
    columns: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
    return columns | vector_columns(found)


def _no_rows(batch: pa.RecordBatch) -> Mapping[str, object]:
    return dict(zip(batch.schema.names, batch.slice(0, 0).columns, strict=True))
