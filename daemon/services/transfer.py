"""`export`, `import`, `verify` and `backup`."""

import asyncio
import secrets
import tempfile
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from errno import EACCES, EPERM, EROFS
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from daemon.config_types.mounts import private_tmp_problem
from daemon.contract.choices import ExportFormat
from daemon.contract.scope import Scope
from daemon.contract.transfer import (
    SEED_MAX,
    BackupResponse,
    FreshBuildResponse,
    ImportResponse,
    VerifyRequest,
    VerifyResponse,
)
from daemon.errors import Conflict, Invalid, NotReady
from daemon.observe.redaction import system_error
from daemon.pipeline.fresh_build import FreshBuild, FreshBuildReport
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.record_import import import_records, is_record_file
from daemon.pipeline.uninterrupted import run_to_end
from daemon.services.openie_import import OpenieImport, count_passages
from daemon.services.progress import LongTask, ProgressBoard
from daemon.services.scopes import ScopeService
from memory.openie.hipporag_file import HippoRAGFormatError
from store.backup.local import backup
from store.backup.remote import send
from store.errors import StoreError
from store.export.graphml import graphml_lines, gzipped
from store.export.json_lines import export_lines
from store.store import Store
from store.verify.verify import verify

EXPORT_CHUNK_LINES = 400
"""Lines in a chunk of an export: about 64 KiB."""

TRANSFER_THREADS = 6
"""Threads for concurrent exports, checks and backups: at least the number that the API's limits allow."""

ReportStep = Callable[[str, int, int | None], None]
T = TypeVar("T")


class ClientGone(Exception):
    """The client that requested this work has disconnected."""


class TransferService:
    """Serves export, import, verify and backup."""

    def __init__(
        self,
        store: Store,
        pipeline: Pipeline,
        scopes: ScopeService,
        progress: ProgressBoard,
        fresh_build: FreshBuild,
        check_record_file: Callable[[str], Awaitable[str | None]],
    ) -> None:
        """`check_record_file` returns why a file is no valid file of records; None if it is valid."""
        self._store = store
        self._fresh_build = fresh_build
        self._check_record_file = check_record_file
        self._scopes = scopes
        self._pipeline = pipeline
        self._progress = progress
        self._threads = ThreadPoolExecutor(TRANSFER_THREADS, thread_name_prefix="transfer")

    async def export(self, format: ExportFormat, scope: Scope | None = None) -> AsyncGenerator[bytes, None]:
        if scope is None:
            memory = await run_to_end(self._threads, self._store.document_snapshot)
        else:
            memory = await run_to_end(self._threads, partial(self._scopes.memory, scope))
        lines_of = export_lines if format is ExportFormat.JSONL else graphml_lines
        lines = lines_of(memory.snapshot, memory)

        def chunk() -> bytes:
            return "".join(f"{line}\n" for line in islice(lines, EXPORT_CHUNK_LINES)).encode("utf-8", "replace")

        chunks: Iterator[bytes] = iter(chunk, b"")
        if format is ExportFormat.IGRAPH:
            chunks = gzipped(chunks)
        while part := await run_to_end(self._threads, partial(next, chunks, b"")):
            yield part

    async def import_openie(self, chunks: AsyncIterator[bytes]) -> ImportResponse:
        """Imports a file. If cancelled, indexes documents that are in the inbox already, and drops the other documents.

        Raises NotReady if the file cannot be written to the disk.
        """
        with ExitStack() as stack:
            with _storing():
                file = stack.enter_context(tempfile.NamedTemporaryFile(prefix="hippod-import-"))
            async for chunk in chunks:
                with _storing():
                    await asyncio.to_thread(_write, file, chunk)
            path = Path(file.name)
            try:
                if await asyncio.to_thread(is_record_file, path):
                    return await self._take_records(path)
                read = await self._take_in(path)
            except HippoRAGFormatError as error:
                raise Invalid(str(error).replace(file.name, "The body")) from error
        passages = await asyncio.to_thread(read.passages)
        return ImportResponse(passages=passages, triples=read.triples, skipped=read.skipped)

    async def _take_records(self, path: Path) -> ImportResponse:
        if (fault := await self._check_record_file(str(path))) is not None:
            raise Invalid(f"The body is Parquet, but not a file of records: {fault}")
        with self._progress.running("import", "records") as task:
            imported = await import_records(self._pipeline, path, lambda done, known: task.update(None, done, known))
        return ImportResponse(
            passages=imported.passages, triples=imported.triples, skipped=imported.unreadable, records=imported.records
        )

    async def _take_in(self, path: Path) -> OpenieImport:
        """Imports a HippoRAG file; returns once all its documents are committed."""
        tickets: list[int] = []
        queued, expected = 0, await asyncio.to_thread(count_passages, path)

        def refresh(task: LongTask) -> None:
            task.update(None, queued - self._pipeline.inbox.waiting(tickets), expected)

        with self._progress.running("import", "passages", refresh):
            read = await asyncio.to_thread(OpenieImport, path, *self._pipeline.inbox.capacity.limits)
            while documents := await asyncio.to_thread(read.documents):
                tickets.append(await self._pipeline.inbox.add(documents, wait=True))
                queued += len(documents)
                expected = max(expected, queued)
            expected = queued
            await self._pipeline.inbox.indexed(tickets)
        return read

    async def verify(self, request: VerifyRequest) -> VerifyResponse:
        with self._progress.running("verify", "rows") as task:
            found = await self._until_cancelled(partial(verify, self._store), task)
        fresh = None
        if request.against_fresh_build is not None:
            fresh = await self._compare_with_fresh_build(request.against_fresh_build, request.seed, found.problems)
        return VerifyResponse(
            commit=found.commit,
            checked=found.checked,
            without_checksum=found.without_checksum,
            lines=found.lines,
            synonym_recall=found.synonym_recall,
            problems=found.problems,
            fresh_build=fresh,
        )

    async def _compare_with_fresh_build(self, count: int, seed: int | None, problems: list[str]) -> FreshBuildResponse:
        """Compares documents with a fresh build; appends the differences to `problems`."""
        seed = secrets.randbelow(SEED_MAX) if seed is None else seed
        report = FreshBuildReport()
        with self._progress.running("verify", "files") as task:
            chosen = await asyncio.to_thread(self._fresh_build.choose, count, seed)
            for done, (file, documents) in enumerate(chosen.items()):
                task.update("parsing again", done, len(chosen))
                await self._fresh_build.compare(file, documents, report)
        problems += report.problems
        return FreshBuildResponse(
            documents=report.documents, passages=report.passages, seed=seed, changed=report.changed
        )

    async def _until_cancelled(self, work: Callable[[ReportStep], T], task: LongTask) -> T:
        """Runs `work` in a thread. If the client disconnects, ends at the next report of `work`."""
        cancelled = threading.Event()

        def report(step: str, done: int, total: int | None) -> None:
            if cancelled.is_set():
                raise ClientGone
            task.update(step, done, total)

        return await run_to_end(self._threads, partial(work, report), cancelled.set)

    async def backup(self, directory: str) -> BackupResponse:
        cancelled = threading.Event()
        if "://" not in directory or directory.startswith("file://"):
            # Refuse before writing, because no other process would see the backup.
            problem = await asyncio.to_thread(private_tmp_problem, Path(directory.removeprefix("file://")))
            if problem is not None:
                raise Conflict(problem, errors={"directory": problem})
        try:
            with self._progress.running("backup", "files") as task:
                if "://" not in directory:
                    made = await self._until_cancelled(partial(backup, self._store, Path(directory)), task)
                    return BackupResponse(directory=directory, commit=made.commit, files=made.files, bytes=made.bytes)
                sending = partial(send, self._store, directory, task.update, cancelled=cancelled.is_set)
                sent = await run_to_end(self._threads, sending, cancelled.set)
        except (StoreError, OSError) as error:
            detail = str(error)
            if isinstance(error, OSError) and error.errno in (EROFS, EACCES, EPERM):
                detail += "; the daemon writes it, so name a directory that its user and its unit may write to"
            raise Conflict(detail, errors={"directory": detail}) from error
        return BackupResponse(
            directory=directory,
            commit=sent.backup.commit,
            files=sent.backup.files,
            bytes=sent.backup.bytes,
            name=sent.name,
            sent=sent.sent_files,
            sent_bytes=sent.sent_bytes,
        )


@contextmanager
def _storing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NotReady(
            f"The disk of temporary files refused to store the import: {system_error(error)}; nothing was imported: send it "
            "again once the disk has room.",
            retry_after_s=10,
        ) from error


def _write(file: "tempfile._TemporaryFileWrapper[bytes]", chunk: bytes) -> None:
    file.write(chunk)
    file.flush()
