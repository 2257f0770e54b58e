"""`/v1/export`, `/v1/import`, `/v1/verify` and `/v1/backup`: the whole memory out, in, checked, or copied."""

import operator
from typing import Annotated

from pydantic import Field, StringConstraints

from daemon.contract.base import Request, Response, is_empty
from daemon.contract.choices import ExportFormat
from daemon.contract.scope import ScopeParameter

BACKUP_PLACE = r"^(/[^\x00]*|s3://[^\x00/]+(/[^\x00]*)?|file:///[^\x00]+)$"


class ExportRequest(Request):
    """The query string of `GET /v1/export`."""

    format: ExportFormat = ExportFormat.JSONL
    scope: ScopeParameter | None = None


class ImportResponse(Response):
    """Counts; `skipped` are malformed triples, or rows that are no records."""

    passages: int
    triples: int
    skipped: int
    records: int | None = Field(default=None, exclude_if=is_empty)
    """Of a file of records, how many documents it holds; left out for others."""


class VerifyResponse(Response):
    """Everything was derived once more from the tables as of `commit` and compared. No `problems`: all is well.

    `checked` files of the tables were compared with their checksums; `without_checksum` have none, because an earlier hippod
    wrote them: they get one when maintenance writes their rows anew.
    """

    commit: int
    checked: int
    without_checksum: int = Field(default=0, exclude_if=operator.not_)
    lines: int
    """Lines of the export that were compared."""
    synonym_recall: float
    """Share of the synonym edges that should exist and do; of a sample where there are many phrases."""
    problems: list[str]


class BackupRequest(Request):
    """An absolute path on the daemon's machine, a directory that must be absent or empty; or a URL to which only what is new
    is sent: `s3://bucket/prefix`, or `file:///folder`."""

    directory: Annotated[str, StringConstraints(min_length=2, pattern=BACKUP_PLACE)]


class BackupResponse(Response):
    """What the backup holds: the memory at `commit`. Of a URL also the backup's name there, and what had to be sent."""

    directory: str
    commit: int
    files: int
    bytes: int
    name: str | None = Field(default=None, exclude_if=is_empty)
    sent: int | None = Field(default=None, exclude_if=is_empty)
    """Files."""
    sent_bytes: int | None = Field(default=None, exclude_if=is_empty)
