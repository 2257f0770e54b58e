"""Writes records as Arrow data: one record as the value of a Kafka message, or many as a Parquet file."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import DTypeLike, NDArray

from consumers.records.record import Record, RecordVectors
from consumers.records.schema import (
    FAILED,
    FLOATS,
    HALVES,
    INDEXED,
    REMOVED,
    SCHEMA,
    SKIPPED,
    STRINGS,
    TRIPLES,
    VECTORS,
)
from consumers.types import ParsedDocument

ROW_GROUP_RECORDS = 64
"""Number of records per row group: only one group is in memory while a file is written or read."""


def to_message(record: Record) -> bytes:
    """Returns the record as an Arrow IPC stream with one row."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, SCHEMA, options=options) as stream:
        stream.write_batch(to_batch([record]))
    return bytes(sink.getvalue())


def write_file(path: Path, records: Iterable[Record]) -> int:
    """Writes a Parquet file and returns the number of its records."""
    rest, count = iter(records), 0
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as file:
        while part := list(islice(rest, ROW_GROUP_RECORDS)):
            file.write_batch(to_batch(part))
            count += len(part)
    return count


def to_batch(records: Sequence[Record]) -> pa.RecordBatch:
    """Returns a RecordBatch with one row per record."""
    rows = [_row(record) for record in records]
    columns = {
        field.name: pa.array([row[field.name] for row in rows], field.type)
        for field in SCHEMA
        if field.name != "vectors"
    }
    columns["vectors"] = _vectors([record.vectors for record in records])
    return pa.RecordBatch.from_arrays([columns[field.name] for field in SCHEMA], schema=SCHEMA)


def state_of(document: ParsedDocument) -> str:
    if document.deleted:
        return REMOVED
    if document.error is not None:
        return SKIPPED if document.skipped else FAILED
    return INDEXED


def _row(record: Record) -> dict[str, Any]:
    document = record.document
    metadata = dict(document.metadata)
    labels = metadata.get("labels")
    if isinstance(labels, list) and all(isinstance(label, str) for label in labels):
        del metadata["labels"]
    else:
        labels = None
    extractions = record.extractions or (None,) * len(document.passages)
    passages = [
        {
            "title": storable(passage.title),
            "text": storable(passage.text),
            "location": json.dumps(dict(passage.location)),
            "triples": None if passage.triples is None else [list(map(storable, triple)) for triple in passage.triples],
            "extraction": None if extraction is None else asdict(extraction),
        }
        for passage, extraction in zip(document.passages, extractions, strict=True)
    ]
    return {
        "uri": document.uri,
        "state": state_of(document),
        "title": storable(document.title),
        "error": None if document.error is None else storable(document.error),
        "code": None if document.code is None else document.code.value,
        "modified_at": document.modified_at,
        "metadata": json.dumps(metadata),
        "labels": labels,
        "position": None if record.position is None else record.position.to_json(),
        "passages": passages,
        "left_out": [
            {"kind": each.kind.value, "count": each.count, "text": storable(each.text)} for each in document.left_out
        ],
        "links": [
            {
                "target": storable(link.target),
                "heading": storable(link.heading),
                "text": storable(link.text),
                "passage": number,
            }
            for number, passage in enumerate(document.passages)
            for link in passage.links
        ],
    }


def storable(text: str) -> str:
    """Replaces lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _vectors(rows: Sequence[RecordVectors | None]) -> pa.StructArray:
    """Builds the column `vectors` from numpy arrays without creating a Python object for each number."""
    filled = [row or RecordVectors("", 0) for row in rows]
    triples = [[list(triple) for triple in row.triples] for row in filled]
    children = [
        pa.array([row.encoder for row in filled], pa.string()),
        pa.array([row.dim for row in filled], pa.int32()),
        _numbers([row.passages for row in filled], np.float16, HALVES),
        pa.array([list(row.phrases) for row in filled], STRINGS),
        _numbers([row.phrase_vectors for row in filled], np.float32, FLOATS),
        pa.array(triples, TRIPLES),
        _numbers([row.triple_vectors for row in filled], np.float16, HALVES),
    ]
    return pa.StructArray.from_arrays(
        children, fields=list(VECTORS), mask=pa.array([row is None for row in rows], pa.bool_())
    )


def _numbers(arrays: Sequence[NDArray[np.float32]], dtype: DTypeLike, kind: pa.DataType) -> pa.ListArray:
    ends = np.cumsum([0, *(array.size for array in arrays)])
    flat = np.concatenate([array.reshape(-1).astype(dtype) for array in arrays])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(flat), type=kind)
