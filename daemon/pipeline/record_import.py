"""Imports a file of records as bulk work."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import structlog

from consumers.records.reader import PARQUET_MAGIC, read_file
from consumers.records.record import Record, RecordError
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.work_items import DeliveredDocument, Urgency
from store.types import is_statement

UNCOMMITTED_RECORDS = 1024
"""Maximum uncommitted records of an import: enough to fill commits, few enough to use little memory."""
READ_RECORDS = 64
"""Number of records read from the file in one step, in a thread."""

log = structlog.get_logger()


@dataclass(slots=True)
class ImportedRecords:
    """The result of an import. `unreadable` counts rows that are not valid records."""

    records: int = 0
    passages: int = 0
    triples: int = 0
    unreadable: int = 0


def is_record_file(path: Path) -> bool:
    """Returns whether the file begins like a Parquet file."""
    with path.open("rb") as file:
        return file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC


class _Counted:
    """The acknowledgement shared by all records of one import. Has no position to store."""

    def __init__(self) -> None:
        self.committed = 0

    @property
    def tracker(self) -> "_Counted":
        return self

    def positions(self, parts: Collection[object]) -> dict[str, Any]:  # noqa: ARG002
        return {}

    def done(self) -> None:
        self.committed += 1


async def import_records(
    pipeline: Pipeline, path: Path, progress: Callable[[int, int], None] = lambda _done, _known: None
) -> ImportedRecords:
    """Imports a valid file of records; returns once all its records are committed.

    Each record is written in the name of its URI's owner. This is safe: only clients that may change the whole memory can
    import. `progress` is called with (committed records, records read so far).
    """
    counts, counted = ImportedRecords(), _Counted()
    rows = read_file(path)
    while part := await asyncio.to_thread(lambda: [*islice(rows, READ_RECORDS)]):
        for row in part:
            if isinstance(row, RecordError):
                counts.unreadable += 1
                log.warning("record_skipped", reason=str(row))
                continue
            _count(counts, row)
            owner = pipeline.owners.owner(row.uri).source
            await pipeline.deliver(record_delivery(row), owner, acknowledgement=counted, urgency=Urgency.BULK)
            while counts.records - counted.committed >= UNCOMMITTED_RECORDS:
                await pipeline.intake.changed_within(0.5)
        progress(counted.committed, counts.records)
    while counted.committed < counts.records:
        await pipeline.intake.changed_within(0.5)
        progress(counted.committed, counts.records)
    return counts


def record_delivery(record: Record, payload: Callable[[], str] | None = None) -> DeliveredDocument:
    document = None if record.document.deleted else record.document
    return DeliveredDocument(record.uri, document, payload, record)


def _count(counts: ImportedRecords, record: Record) -> None:
    counts.records += 1
    counts.passages += len(record.document.passages)
    for passage, extraction in zip(record.document.passages, record.extractions, strict=True):
        supplied = passage.triples if passage.triples is not None or extraction is None else extraction.triples
        counts.triples += sum(map(is_statement, supplied or ()))
