"""How a store that an older hippod made becomes one of this version's.

A store says its format in its first commit, and again in the commit of each migration. Opening an older store makes the
steps that lie between, each a commit of its own: a crash in the middle of one leaves the store as it was before that step,
by the same rule that undoes any other commit that was not finished. Nothing is made backwards; a newer store is refused.

When the format changes, in one commit: `store.lance.schema.FORMAT` goes up by one, a step from the old number goes
into `STEPS`,
the changelog names it, and `tests/store/log/released/make.py` has written a store with the *last release* before, which
`tests/store/log/test_migrations.py` opens from then on. A step writes the tables that it changes anew (`Tables.write_anew`);
`commits` keeps its columns for ever, as it is read before any step: what is new there goes into `facts`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from store.fixed_point import fixed
from store.lance.schema.vectors import VECTOR_COLUMNS, vector_columns, vector_fields
from store.lance.tables import Tables
from store.log.migrated import Migrated
from store.log.record_extractions import separate_record_extractions
from store.types import ExtractionOutcome

Step = Callable[[Tables], Migrated | None]
"""Changes the tables of one format into those of the next. It may raise what Lance raises; the step is undone then."""

STAND_IN_PREFIX = "fallback:"
FAILED_PREFIX = "failed:"
"""What format 1 wrote before an extractor's name: `fallback:<extractor>`, and `failed:<attempts>:<why>` in place of a name."""


def add_failure_columns(tables: Tables) -> None:
    """Format 1 to 2: extractions say in columns of their own what became of them; documents say by a code why they failed.

    Which extractor had failed on a passage was not written down: its name is empty. A document that failed before has the code
    `other`; its next try, or `hippoctl retry`, gives it the true one.
    """
    tables.replace_rows(
        "extractions",
        _with(tables, "extractions", ("status", pa.string()), ("attempts", pa.int32()), ("error", pa.string())),
        _split_extractor,
    )
    tables.replace_rows("documents", _with(tables, "documents", ("code", pa.string())), _add_code)


def _with(tables: Tables, name: str, *columns: tuple[str, pa.DataType]) -> pa.Schema:
    """The table's columns of before, and some more."""
    schema = tables.columns(name)
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


def round_vectors(tables: Tables) -> None:
    """Format 2 to 3: vectors have two bytes a component (`store.fixed_point`)."""
    for name in ("passages", "phrases", "triples"):
        before = [field for field in tables.columns(name) if field.name not in VECTOR_COLUMNS]
        tables.replace_rows(name, pa.schema([*before, *vector_fields(tables.dim)]), _round_vectors)


def _round_vectors(batch: pa.RecordBatch) -> Mapping[str, object]:
    dim = batch.schema.field("vector").type.list_size
    before = batch["vector"].flatten().to_numpy(zero_copy_only=False).reshape(-1, dim)
    return _columns(batch) | vector_columns(fixed(before))


STEPS: dict[int, Step] = {1: add_failure_columns, 2: round_vectors, 3: separate_record_extractions}
"""The step from each earlier format to the one after it. Format 1 is the first."""


def format_of(facts: Iterable[Mapping[str, Any]]) -> int:
    """The format of a store from the facts of its commits."""
    return max((int(each["format"]) for each in facts if "format" in each), default=1)
