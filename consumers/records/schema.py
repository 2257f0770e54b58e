"""The Arrow schema of records. docs/reference/records.md explains it for authors of programs that write records.

Each row is a record. Adding a nullable column does not change `VERSION`; any other change increments it.
"""

import pyarrow as pa

VERSION = 1
VERSION_KEY = "hippod.record.version"
"""Key of the version in the schema's metadata."""

STRINGS = pa.list_(pa.string())
TRIPLES = pa.list_(pa.list_(pa.string(), 3))
"""Lists of subject, predicate and object."""
HALVES, FLOATS = pa.list_(pa.float16()), pa.list_(pa.float32())
"""Concatenated vectors of n texts: n * dim numbers."""

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
OMISSION = pa.struct([("kind", pa.string()), ("count", pa.int64()), ("text", pa.string())])
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
        pa.field("left_out", pa.list_(OMISSION)),
        pa.field("links", pa.list_(LINK)),
    ],
    metadata={VERSION_KEY: str(VERSION)},
)
REQUIRED = ("uri", "state")
"""Required columns. A missing optional column counts as null."""

INDEXED, FAILED, SKIPPED, REMOVED = "indexed", "failed", "skipped", "removed"
STATES = (INDEXED, FAILED, SKIPPED, REMOVED)
"""Values of `state`. `failed` and `skipped` documents have an `error`; `removed` documents have only a URI and a position."""
