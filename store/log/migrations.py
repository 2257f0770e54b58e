"""Migrates a store of an older hippod to the format of this version.

A store's format is recorded in its first commit and in the commit of each migration. Opening an older store runs one step for
each format in between. Each step is one commit: after a crash, the next opening removes the unfinished step. There are no steps
to older formats, and a store with a newer format is refused. `store.upgrade_backup` keeps the state before the first step.

To change the format, make one commit of the repository with these parts: increment `store.lance.schema.FORMAT`; add a step from
the old format to `STEPS`; name the change in the changelog; and add a store written by the *last release* with
`tests/store/log/released/make.py`, which `tests/store/log/test_migrations.py` opens from then on. A step rewrites the tables
that it changes (`TableWriter.replace_rows`). The columns of `commits` never change, because the table is read before any step;
additions go into `facts`.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import pyarrow as pa
import structlog

from store.fixed_point import fixed
from store.lance.schema.vectors import VECTOR_COLUMNS, vector_columns, vector_fields
from store.lance.table_writer import TableWriter
from store.lance.tables import TableView
from store.log.commit_history import FAILED_PREFIX
from store.types import ExtractionCosts, ExtractionOutcome

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Migrated:
    """Result of a step. `deleted_costs` are the costs of the extractions whose rows the step deleted.

    `triples_changed`: whether the triples of passages may have changed; opening then recomputes the synonym edges.
    """

    deleted_costs: ExtractionCosts = field(default_factory=dict)
    triples_changed: bool = False
    earlier_commits_readable: bool = False
    """Whether earlier commits can still be queried after the step."""


Step = Callable[[TableWriter], Migrated | None]
"""Converts the tables of one format to the next. The step may raise any error of Lance, and is then undone."""

STAND_IN_PREFIX = "fallback:"
"""Prefix of the column `extractor` that marks a stand-in's extraction in format 1: `fallback:<extractor>`."""

DONE, FAILED, INDEXED = "done", "failed", "indexed"
"""Names of states in format 3."""

GIVEN_UP_ATTEMPTS = 4
"""Number of failures after which the daemon no longer retries an extraction."""

READ_AGAIN = "the upgrade of the store requires that the passage is extracted again: run `hippoctl retry`"

READ_DOCUMENTS = 256
"""Number of rows of `documents` that are converted to Python objects at a time."""


def add_failure_columns(tables: TableWriter) -> None:
    """Format 1 to 2: adds columns for the outcome of extractions, and a failure code for documents.

    Format 1 did not record which extractor had failed on a passage, so the name becomes empty. Documents that failed before get
    the code `other`; their next try, or `hippoctl retry`, sets the actual code.
    """
    tables.replace_rows(
        "extractions",
        _with(tables, "extractions", ("status", pa.string()), ("attempts", pa.int32()), ("error", pa.string())),
        _split_extractor,
    )
    tables.replace_rows("documents", _with(tables, "documents", ("code", pa.string())), _add_code)


def _with(tables: TableWriter, name: str, *columns: tuple[str, pa.DataType]) -> pa.Schema:
    """Returns the table's present columns followed by `columns`."""
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


def separate_record_extractions(tables: TableWriter) -> Migrated:
    """Format 3 to 4: the table `extractions` contains only results of the local extractor, and no extractions from records.

    Format 3 also stored a record's extraction in this table. In this table, the extraction applied to every document that
    contains the passage. The triples are also stored in the record's document (`PassageRef.triples`), so the row is deleted. A
    row is deleted too if it may come from a record: its triples may belong to a document that some readers of the passage must
    not see. A row is kept if no row of `documents` shows that a record contained its passage.

    A passage that now needs the local extractor is recorded as failed without a next try, because an upgrade must not cause
    paid calls of a model. `hippoctl retry` extracts the passage; an extractor without costs processes it at the next start.
    """
    uses = _Uses()
    for document in _documents(tables.before):
        uses.add_document(document)
    sorting = _Sorting(uses)
    for batch in tables.before.batches("extractions", _COLUMNS):
        for row in batch.to_pylist():
            sorting.add_extraction(row)
    sorting.drop_outdated(tables.before)
    failed = sorting.to_extract_again()
    if sorting.dropped or sorting.emptied or failed:
        schema = tables.before.columns("extractions")
        tables.replace_rows("extractions", schema, sorting.converted, _failure_rows(failed, uses.last_commit))
        logger.warning("record_extractions_separated", deleted=len(sorting.dropped), to_read=len(failed))
    shared = any(number and number + uses.without[passage] > 1 for passage, number in uses.supplied.items())
    return Migrated(sorting.costs, bool(shared or sorting.dropped or sorting.emptied))


_COLUMNS = ("passage", "extractor", "triples", "prompt_tokens", "completion_tokens", "commit", "status")


def _documents(tables: TableView) -> Iterator[Mapping[str, Any]]:
    """Yields the rows of `documents` in commit order, including earlier states of documents."""
    table = tables.read("documents", ("uri", "state", "metadata", "passages", "commit")).sort_by("commit")
    for batch in table.to_batches(READ_DOCUMENTS):
        yield from batch.to_pylist()


@dataclass(slots=True)
class _Uses:
    """Which documents use each passage, by passage id."""

    without: Counter[str] = field(default_factory=Counter)
    """For each passage: number of documents that contain it without supplying its extraction, as of the last added row."""
    supplied: Counter[str] = field(default_factory=Counter)
    """For each passage: number of documents that supply its extraction, as of the last added row."""
    recorded_since: dict[str, int] = field(default_factory=dict)
    """For each passage: the first known commit in which a record supplied its extraction."""
    failed_since: dict[str, int] = field(default_factory=dict)
    """For each passage: the first known commit in which a record contained it without an extraction; the record may have
    supplied a failure."""
    recorded: set[int] = field(default_factory=set)
    """Fingerprints of the extractions that records supplied (`_fingerprint`)."""
    last_commit: int = 0
    _held: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)
    """For each URI, the passages of the document's last state: (without a supplied extraction, with one)."""

    def add_document(self, row: Mapping[str, Any]) -> None:
        """Adds a row of `documents`. Rows must be added in commit order."""
        uri, commit = row["uri"], row["commit"]
        self.last_commit = commit
        for number, passages in zip((self.without, self.supplied), self._held.pop(uri, ([], [])), strict=True):
            number.subtract(passages)
        if row["state"] != INDEXED:
            return
        refs = [(passage, triples, *extractor) for passage, _, triples, *extractor in json.loads(row["passages"])]
        from_record = any(len(ref) > 2 for ref in refs) or "record" in json.loads(row["metadata"] or "{}")
        held: dict[str, bool] = {}
        for passage, triples, *extractor in refs:
            held[passage] = held.get(passage, False) or triples is not None
            if extractor:
                self.recorded_since.setdefault(passage, commit)
                self.recorded.add(_fingerprint(passage, extractor[0], triples))
            elif from_record and triples is None:
                self.failed_since.setdefault(passage, commit)
        self._held[uri] = [p for p, was_supplied in held.items() if not was_supplied], [p for p in held if held[p]]
        for number, passages in zip((self.without, self.supplied), self._held[uri], strict=True):
            number.update(passages)


@dataclass(slots=True)
class _Sorting:
    """Decides which rows of `extractions` are kept, deleted or emptied. A row is identified by its passage and commit."""

    uses: _Uses
    dropped: set[tuple[str, int]] = field(default_factory=set)
    costs: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Costs of the deleted extractions, by extractor."""
    emptied: set[tuple[str, int]] = field(default_factory=set)
    """Failure rows that may come from a record: their content is cleared, and their number of attempts is kept."""
    kept: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """Kept rows by passage. Contains only passages some of whose rows may be deleted."""
    unaffected: set[str] = field(default_factory=set)
    """Passages whose rows are all kept."""

    def add_extraction(self, row: Mapping[str, Any]) -> None:
        uses, passage, commit = self.uses, row["passage"], row["commit"]
        recorded = commit >= uses.recorded_since.get(passage, commit + 1)
        failed = commit >= uses.failed_since.get(passage, commit + 1)
        same = _fingerprint(passage, row["extractor"], row["triples"]) in uses.recorded
        if row["status"] == DONE and (recorded or same):
            self._drop(row)
        elif row["status"] == FAILED and (recorded or failed):
            self.emptied.add((passage, commit))
        elif passage in uses.recorded_since or passage in uses.failed_since:
            self.kept.setdefault(passage, []).append(row)
        else:
            self.unaffected.add(passage)

    def _drop(self, row: Mapping[str, Any]) -> None:
        self.dropped.add((row["passage"], row["commit"]))
        if row["status"] == DONE:
            count, prompt, completion = self.costs.get(row["extractor"], (0, 0, 0))
            more = row["prompt_tokens"] or 0, row["completion_tokens"] or 0
            self.costs[row["extractor"]] = count + 1, prompt + more[0], completion + more[1]

    def drop_outdated(self, tables: TableView) -> None:
        """Deletes failure rows of passages that keep an extraction. Also deletes a kept row whose triples were purged because a
        later row, which is now deleted, had replaced it."""
        outdated = {each for each in self.emptied if each[0] in self.kept}
        self.emptied -= outdated
        self.dropped |= outdated
        last = {passage: max(rows, key=itemgetter("commit")) for passage, rows in self.kept.items()}
        found = {passage: last[passage]["triples"] for passage, _ in self.dropped if passage in last}
        known = _stored_triples(tables) if any(found.values()) else set()
        for passage, triples in found.items():
            if not known.issuperset(map(tuple, triples or ())):
                for row in self.kept.pop(passage):
                    self._drop(row)

    def to_extract_again(self) -> list[str]:
        """Returns the passages that must be extracted again: a document needs their extraction, no row of them is left, and
        they were not already waiting for the extractor."""
        read = {*self.kept, *self.unaffected, *(passage for passage, _ in self.emptied)}
        candidates = {passage for passage, number in self.uses.supplied.items() if number}
        candidates |= {passage for passage, _ in self.dropped}
        return sorted(passage for passage in candidates - read if self.uses.without[passage])

    def converted(self, batch: pa.RecordBatch) -> Mapping[str, object]:
        """Returns the columns of the kept rows of a batch."""
        rows = [row for row in batch.to_pylist() if (row["passage"], row["commit"]) not in self.dropped]
        empty = {"extractor": "", "entities": [], "triples": [], "error": READ_AGAIN}
        rows = [row | empty if (row["passage"], row["commit"]) in self.emptied else row for row in rows]
        return {name: [row[name] for row in rows] for name in batch.schema.names}


def _failure_rows(passages: list[str], commit: int) -> Mapping[str, object]:
    """Returns the columns of the rows of `extractions` that mark passages for another extraction."""
    n = len(passages)
    return {
        "passage": passages,
        "extractor": [""] * n,
        "entities": [[]] * n,
        "triples": [[]] * n,
        "prompt_tokens": [0] * n,
        "completion_tokens": [0] * n,
        "took_ms": [0.0] * n,
        "commit": [commit] * n,
        "status": [FAILED] * n,
        "attempts": [GIVEN_UP_ATTEMPTS] * n,
        "error": [READ_AGAIN] * n,
    }


def _stored_triples(tables: TableView) -> set[tuple[str, ...]]:
    phrases = tables.read("phrases", ("row", "text"))
    text = dict(zip(phrases["row"].to_pylist(), phrases["text"].to_pylist(), strict=True))
    triples = tables.read("triples", ("subject", "predicate", "object")).to_pylist()
    return {(text[row["subject"]], row["predicate"], text[row["object"]]) for row in triples}


def _fingerprint(passage: str, extractor: str, triples: Sequence[Sequence[str]] | None) -> int:
    """Hashes an extraction, because a store has millions of extractions. A collision only causes one more extraction."""
    return hash((passage, extractor, frozenset(map(tuple, triples or ()))))


def begin_log(_tables: TableWriter) -> Migrated:
    """Format 4 to 5: later commits are written to the log (`store.log.write_ahead_log`) before they are moved into the
    tables."""
    return Migrated(earlier_commits_readable=True)


STEPS: dict[int, Step] = {1: add_failure_columns, 2: round_vectors, 3: separate_record_extractions, 4: begin_log}
"""The step from each earlier format to the next. Format 1 is the first."""
