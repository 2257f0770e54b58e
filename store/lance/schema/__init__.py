"""One file a table: its columns, how values become rows, and how rows become values again.

A new column goes to the end of the table's file here and, as stores without it exist, into a step in `store.log.migrations`,
which puts it in the same place.
"""

from collections.abc import Mapping

import pyarrow as pa

from store.lance.schema import commits, documents, extractions, passages, phrases, synonyms, triples

FORMAT = 4
"""The store format that this version writes; a store with a larger one is refused."""

TABLES = ("passages", "phrases", "triples", "extractions", "synonyms", "documents", "commits")


def schemas(dim: int) -> Mapping[str, pa.Schema]:
    """Every table's columns, by the table's name. `dim`: how many numbers a vector has.

    `row` is the internal number: the position in the table's order of first appearance. `commit` says which of several rows
    for one key is the last: Lance keeps no order of rows through a compaction.
    """
    return {
        "passages": passages.schema(dim),
        "phrases": phrases.schema(dim),
        "triples": triples.schema(dim),
        "extractions": extractions.SCHEMA,
        "synonyms": synonyms.SCHEMA,
        "documents": documents.SCHEMA,
        "commits": commits.SCHEMA,
    }
