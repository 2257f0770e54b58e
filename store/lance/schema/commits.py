"""The table `commits`. Its columns never change, because the table is read before a store is migrated.

`versions` maps every other table to its version. It is set only in rows written without the write-ahead log: rows of format 4
and earlier, of the first commit, and of purges, trims, migrations and encoder switches. `positions` contains the sources'
positions that the commit changed; None removes a position. Additions of later formats go into `facts`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from store.lance.schema.vectors import Columns

SCHEMA = pa.schema(
    [
        ("seq", pa.int64()),
        ("time", pa.float64()),
        ("kind", pa.string()),
        ("versions", pa.string()),
        ("positions", pa.string()),
        ("facts", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class CommitRow:
    """One commit. `time` is in Unix seconds."""

    seq: int
    time: float
    kind: str
    versions: Mapping[str, int]
    positions: Mapping[str, Any]
    facts: Mapping[str, Any]


def to_columns(row: CommitRow) -> Columns:
    return {
        "seq": [row.seq],
        "time": [row.time],
        "kind": [row.kind],
        "versions": [json.dumps(dict(row.versions))],
        "positions": [json.dumps(dict(row.positions))],
        "facts": [json.dumps(dict(row.facts))],
    }


def from_table(table: pa.Table) -> list[CommitRow]:
    """Returns all rows, in commit order. A hippod of format 4 that ended while it merged fragments may have left rows twice."""
    rows = {
        row["seq"]: CommitRow(
            row["seq"],
            row["time"],
            row["kind"],
            json.loads(row["versions"]),
            json.loads(row["positions"]),
            json.loads(row["facts"]),
        )
        for row in table.sort_by("seq").to_pylist()
    }
    return list(rows.values())
