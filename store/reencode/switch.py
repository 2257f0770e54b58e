"""Switches a store to another encoder by writing the new vectors into the tables. `Store.switch_encoder` makes the commit with
which the new vectors become valid."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from store.change.load import load_index
from store.change.synonym_change import settle_synonyms
from store.change.write_rows import table_rows
from store.errors import NotEncoded
from store.fixed_point import fixed
from store.index.live_index import KINDS, LiveIndex
from store.lance.schema import synonyms
from store.lance.schema.vectors import VECTOR_COLUMNS, vector_columns, vector_fields
from store.lance.table_writer import TableWriter
from store.lance.tables import Tables
from store.log.commit_history import encoder_facts, rule_facts
from store.reencode.new_vectors import NewVectors, key_of_content
from store.types import Calibration, SynonymRule


@dataclass(frozen=True, slots=True)
class NewEncoder:
    """`vectors`: the vectors of all texts in the store. `rule`: the rule of the new synonym edges. `positions`: positions
    committed together with the switch."""

    vectors: NewVectors
    calibration: Calibration
    rule: SynonymRule
    positions: Mapping[str, Any] = field(default_factory=dict)

    def facts(self, commit: int) -> dict[str, Any]:
        """Returns the facts of the commit that switches the encoder; it becomes the earliest commit that can be queried."""
        made = encoder_facts(self.vectors.target.identity, self.calibration) | rule_facts(self.rule)
        return made | {"horizon": commit}


def switched_index(tables: Tables, writer: TableWriter, old: LiveIndex, new: NewEncoder, commit: int) -> LiveIndex:
    """Writes the rows of the commit that switches to `new`; returns the resulting index. `old` must be the index of the present
    tables. Raises NotEncoded if a text has no new vector."""
    _rewrite_tables(writer, old, new.vectors)
    index = load_index(tables.after(writer), new.vectors.target.dim, new.rule)
    index.keep_numbering_of(old)
    edges = settle_synonyms(index)
    for name, columns in table_rows(index, edges, commit).items():
        writer.add_columns(name, columns)
    index.apply(edges)
    return index


def _rewrite_tables(tables: TableWriter, index: LiveIndex, vectors: NewVectors) -> None:
    """Rewrites the tables of passages, phrases and triples with the new vectors, and empties the table of synonym edges.

    `index` must be the index of the present tables. Takes O(tables) time; works in batches.
    """
    for kind in KINDS:
        others = [field for field in tables.before.columns(kind) if field.name not in VECTOR_COLUMNS]
        schema = pa.schema([*others, *vector_fields(vectors.target.dim)])
        lacking: list[NotEncoded] = []
        try:
            tables.replace_rows(kind, schema, partial(_with_new_vectors, kind, index, vectors, lacking))
        except (OSError, RuntimeError, ValueError) as error:  # Lance raises these for any error of the conversion
            raise (lacking[0] if lacking else error) from None
    tables.replace_rows("synonyms", synonyms.SCHEMA, _no_rows)


def _with_new_vectors(
    kind: str, index: LiveIndex, vectors: NewVectors, lacking: list[NotEncoded], batch: pa.RecordBatch
) -> Mapping[str, object]:
    numbers, known = batch["row"].to_numpy(), index.ids[kind].view()
    if not np.isin(numbers, known).all():
        raise LookupError(f"the index lacks rows of the table {kind}")
    rows = np.searchsorted(known, numbers).tolist()
    keys = [key_of_content(kind, index.content(kind, row)) for row in rows]
    vectorless = np.array([key is None for key in keys], np.bool_)
    found = np.repeat(fixed(np.zeros((1, vectors.target.dim), np.float32)), len(keys), axis=0)
    try:
        found[~vectorless] = vectors.vectors_of([key for key in keys if key is not None])
    except NotEncoded as error:
        lacking.append(error)
        raise
    columns: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
    return columns | vector_columns(found)


def _no_rows(batch: pa.RecordBatch) -> Mapping[str, object]:
    return dict(zip(batch.schema.names, batch.slice(0, 0).columns, strict=True))
