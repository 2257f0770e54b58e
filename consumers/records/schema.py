"""The Arrow schema of records. docs/reference/records.md explains it to those who write records with other programs.

A row is a record. A column that is added, and may be absent, leaves `VERSION` as it is; whatever else changes raises it.
"""

import pyarrow as pa

VERSION = 1
VERSION_KEY = "hippod.record.version"
"""In the schema's metadata."""

STRINGS = pa.list_(pa.string())
TRIPLES = pa.list_(pa.list_(pa.string(), 3))
"""Lists of subject, predicate and object."""
HALVES, FLOATS = pa.list_(pa.float16()), pa.list_(pa.float32())
"""Vectors one after the other: of n texts n * dim numbers."""

POSITION = pa.struct([("stream", pa.string()), ("offset", pa.int64()), ("time_ms", pa.int64())])
EXTRACTION = pa.struct(
    [
        ("extractor", pa.string()),
        ("entities", STRINGS),
        ("triples", TRIPLES),
        ("prompt_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
        ("took_ms", pa.float32()),
        ("error", pa.string()),
    ]
)
PASSAGE = pa.struct(
    [
        ("title", pa.string()),
        ("text", pa.string()),
        ("location", pa.string()),
        ("triples", TRIPLES),
        ("extraction", EXTRACTION),
    ]
)
LINK = pa.struct([("target", pa.string()), ("heading", pa.string()), ("text", pa.string()), ("passage", pa.int32())])
VECTORS = pa.struct(
    [
        ("encoder", pa.string()),
        ("dim", pa.int32()),
        ("passages", HALVES),
        ("phrases", STRINGS),
        ("phrase_vectors", FLOATS),
        ("triples", TRIPLES),
        ("triple_vectors", HALVES),
    ]
)
SCHEMA = pa.schema(
    [
        pa.field("uri", pa.string()),
        pa.field("state", pa.string()),
        pa.field("title", pa.string()),
        pa.field("error", pa.string()),
        pa.field("code", pa.string()),
        pa.field("modified_at", pa.float64()),
        pa.field("metadata", pa.string()),
        pa.field("labels", STRINGS),
        pa.field("position", POSITION),
        pa.field("passages", pa.list_(PASSAGE)),
        pa.field("vectors", VECTORS),
        pa.field("links", pa.list_(LINK)),
    ],
    metadata={VERSION_KEY: str(VERSION)},
)
REQUIRED = ("uri", "state")
"""Columns that must be there; each of the others may be absent, which says the same as null."""

INDEXED, FAILED, SKIPPED, REMOVED = "indexed", "failed", "skipped", "removed"
STATES = (INDEXED, FAILED, SKIPPED, REMOVED)
"""The values of `state`. `failed` and `skipped` documents have an `error`; `removed` ones nothing but a URI and a position."""
