"""One module per table: its columns, and the conversions between values and rows.

Add a new column at the end of the table's schema. Existing stores lack the column, so also add a step to `store.log.migrations`
that appends it in the same position.
"""

from collections.abc import Mapping

import pyarrow as pa

from store.lance.schema import commits, documents, extractions, passages, phrases, synonyms, triples

FORMAT = 5
"""The store format of this version. A store with a higher format is refused."""

TABLES = ("passages", "phrases", "triples", "extractions", "synonyms", "documents", "commits")


def schemas(dim: int) -> Mapping[str, pa.Schema]:
    """Returns the schema of every table, by name. `dim` is the dimension of the vectors.

    `row` is a row's number within its table, in order of first appearance. `commit` decides which of several rows with the same
    key is the last, because Lance does not preserve the order of rows when it compacts a table.
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
