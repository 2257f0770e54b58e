"""Migrates a store of an older hippod to the format of this version.

A store's format is written in its first commit and in the commit of each migration. Opening an older store runs the steps
in between. Each step is one commit: after a crash, opening removes an unfinished step. There are no steps to older formats; a
store with a newer format is refused. `store.upgrade_backup` keeps the state before the first step.

To change the format, make one commit of the repository with these parts: increment `store.lance.schema.FORMAT`; add a step
from the old format to `STEPS`; name the change in the changelog; and add a store written by the *last release* with
`tests/store/log/released/make.py`, which `tests/store/log/test_migrations.py` opens from then on. A step rewrites the
tables that it changes (`TableWriter.replace_rows`). The columns of `commits` never change, because the log is read before any
step; additions go into `facts`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from store.fixed_point import fixed
from store.lance.schema.vectors import VECTOR_COLUMNS, vector_columns, vector_fields
from store.lance.table_writer import TableWriter
from store.log.migrated import Migrated
from store.log.record_extractions import separate_record_extractions
from store.types import ExtractionOutcome

Step = Callable[[TableWriter], Migrated | None]
"""Converts the tables of one format to the next. It may raise any error of Lance; the step is then undone."""

STAND_IN_PREFIX = "fallback:"
FAILED_PREFIX = "failed:"
"""Prefixes of the extractor in format 1: `fallback:<extractor>`, and `failed:<attempts>:<error>` instead of a name."""


def add_failure_columns(tables: TableWriter) -> None:
    """Format 1 to 2: adds columns for the outcome of extractions, and a failure code for documents.

    Format 1 did not store which extractor had failed on a passage, so its name becomes empty. Documents that failed before
    get the code `other`; their next try, or `hippoctl retry`, sets the real one.
    """
    tables.replace_rows(
        "extractions",
        _with(tables, "extractions", ("status", pa.string()), ("attempts", pa.int32()), ("error", pa.string())),
        _split_extractor,
    )
    tables.replace_rows("documents", _with(tables, "documents", ("code", pa.string())), _add_code)


def _with(tables: TableWriter, name: str, *columns: tuple[str, pa.DataType]) -> pa.Schema:
    """Returns the table's current columns followed by `columns`."""
    schema = tables.before.columns(name)
    for column in columns:
        schema = schema.append(pa.field(*column))
    return schema


def _split_extractor(batch: pa.RecordBatch) -> Mapping[str, object]:
    names, statuses, attempts, errors = [], [], [], []
    for written in batch["extractor"].to_pylist():
        name, status, tried, error = written, ExtractionOutcome.DONE, 0, None
        if written.startswith(STAND_IN_PREFIX):
            name, status = written.removeprefix(STAND_IN_PREFIX), ExtractionOutcome.STAND_IN
        elif written.startswith(FAILED_PREFIX):
            count, _, error = written.removeprefix(FAILED_PREFIX).partition(":")
            name, status, tried = "", ExtractionOutcome.FAILED, int(count) if count.isdigit() else 1
        names.append(name)
        statuses.append(status.value)
        attempts.append(tried)
        errors.append(error)
    return _columns(batch) | {"extractor": names, "status": statuses, "attempts": attempts, "error": errors}


def _add_code(batch: pa.RecordBatch) -> Mapping[str, object]:
    return _columns(batch) | {"code": [None if error is None else "other" for error in batch["error"].to_pylist()]}


def _columns(batch: pa.RecordBatch) -> dict[str, object]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def round_vectors(tables: TableWriter) -> None:
    """Format 2 to 3: stores vectors with two bytes per component (`store.fixed_point`)."""
    for name in ("passages", "phrases", "triples"):
        before = [field for field in tables.before.columns(name) if field.name not in VECTOR_COLUMNS]
        tables.replace_rows(name, pa.schema([*before, *vector_fields(tables.before.dim)]), _round_vectors)


def _round_vectors(batch: pa.RecordBatch) -> Mapping[str, object]:
    dim = batch.schema.field("vector").type.list_size
    before = batch["vector"].flatten().to_numpy(zero_copy_only=False).reshape(-1, dim)
    return _columns(batch) | vector_columns(fixed(before))


def begin_log(_tables: TableWriter) -> Migrated:
    """Format 4 to 5: later commits are in the log (`store.log.log_files`) before they are in the tables."""
    return Migrated(tables_changed=False)


STEPS: dict[int, Step] = {1: add_failure_columns, 2: round_vectors, 3: separate_record_extractions, 4: begin_log}
"""The step from each earlier format to the next. Format 1 is the first."""


def format_of(facts: Iterable[Mapping[str, Any]]) -> int:
    """Returns the format of a store, given the facts of its commits."""
    return max((int(each["format"]) for each in facts if "format" in each), default=1)
