"""The table `commits`, the log. It keeps its columns for ever, as it is read before a store is migrated.

`versions` names the version of every other table that belongs to the commit; `positions` holds the sources' positions that
the commit changed, None for one that is forgotten; what is new in a later format goes into `facts`.
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
class LogRow:
    """One commit as the log has it. `time` is in Unix seconds."""

    seq: int
    time: float
    kind: str
    versions: Mapping[str, int]
    positions: Mapping[str, Any]
    facts: Mapping[str, Any]


def to_columns(row: LogRow) -> Columns:
    return {
        "seq": [row.seq],
        "time": [row.time],
        "kind": [row.kind],
        "versions": [json.dumps(dict(row.versions))],
        "positions": [json.dumps(dict(row.positions))],
        "facts": [json.dumps(dict(row.facts))],
    }


def from_table(table: pa.Table) -> list[LogRow]:
    """Every row, in the order of the commits."""
    return [
        LogRow(
            row["seq"],
            row["time"],
            row["kind"],
            json.loads(row["versions"]),
            json.loads(row["positions"]),
            json.loads(row["facts"]),
        )
        for row in table.sort_by("seq").to_pylist()
    ]
