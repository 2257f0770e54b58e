"""`/v1/export`, `/v1/import`, `/v1/verify` and `/v1/backup`: export, import, check or copy the memory."""

import operator
from typing import Annotated

from pydantic import Field, StringConstraints

from daemon.contract.base import JSON_INTEGER, Request, Response, is_empty
from daemon.contract.choices import ExportFormat
from daemon.contract.scope import ScopeParameter

BACKUP_PLACE = r"^(/[^\x00]*|s3://[^\x00/]+(/[^\x00]*)?|file:///[^\x00]+)$"


class ExportRequest(Request):
    """The query string of `GET /v1/export`."""

    format: ExportFormat = ExportFormat.JSONL
    scope: ScopeParameter | None = None


class ImportResponse(Response):
    """Counts. `skipped`: malformed triples, or invalid rows."""

    passages: int
    triples: int
    skipped: int
    records: int | None = Field(default=None, exclude_if=is_empty)
    """Number of documents in a file of records; absent for other files."""


FRESH_BUILD_MAX_DOCUMENTS = 1_000_000
SEED_MAX = 2**31 - 1


class VerifyRequest(Request):
    """With `against_fresh_build`, this number of documents of followed files, chosen at random from `seed`, are also parsed and
    extracted again and compared.
    """

    against_fresh_build: Annotated[int, Field(ge=1, le=FRESH_BUILD_MAX_DOCUMENTS), JSON_INTEGER] | None = None
    seed: Annotated[int, Field(ge=0, le=SEED_MAX), JSON_INTEGER] | None = None


class FreshBuildResponse(Response):
    """Numbers of `documents` and `passages` that were compared with a fresh build. `changed`: chosen documents that were not
    compared, because their files have changed since they were indexed. The same `seed` chooses the same documents again.
    """

    documents: int
    passages: int
    seed: int
    changed: list[str] = Field(default_factory=list, exclude_if=is_empty)


class VerifyResponse(Response):
    """The result of deriving the memory again from the tables at `commit`. `problems`: the differences, including differences
    between documents and their `fresh_build`, if requested. `checked`: number of files of the tables that were compared with
    their checksums; `without_checksum`: files of an earlier hippod, which get a checksum when maintenance rewrites their rows.
    """

    commit: int
    checked: int
    without_checksum: int = Field(default=0, exclude_if=operator.not_)
    lines: int
    """Number of compared lines of the export."""
    synonym_recall: float
    """Of the synonym edges that should exist, the share that exists; measured on a sample if there are many phrases."""
    problems: list[str]
    fresh_build: FreshBuildResponse | None = Field(default=None, exclude_if=is_empty)


class BackupRequest(Request):
    """The target: an absolute path on the daemon's machine, a directory that must be absent or empty; or a URL
    (`s3://bucket/prefix`, or `file:///folder`) to which only new files are sent.
    """

    directory: Annotated[str, StringConstraints(min_length=2, pattern=BACKUP_PLACE)]


class BackupResponse(Response):
    """The content of the backup: the memory at `commit`. For a URL, also the backup's name there and the number of files and
    bytes sent."""

    directory: str
    commit: int
    files: int
    bytes: int
    name: str | None = Field(default=None, exclude_if=is_empty)
    sent: int | None = Field(default=None, exclude_if=is_empty)
    """Number of sent files."""
    sent_bytes: int | None = Field(default=None, exclude_if=is_empty)
