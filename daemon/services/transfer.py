"""`export`, `import`, `verify` and `backup`: the whole memory as lines, and what others have extracted already."""

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from errno import EACCES, EPERM, EROFS
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from daemon.api.errors import Conflict, Invalid
from daemon.contract import BackupResponse, ExportFormat, FieldError, ImportResponse, VerifyResponse
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.work import Added
from daemon.services.naming import added_uri
from memory.openie.recorded import RecordedFormatError, read_recorded
from store.backup import backup
from store.errors import StoreError
from store.export import export_lines
from store.graphml import graphml_lines, packed
from store.store import Store
from store.verify import verify

LINES = 400
"""Lines a chunk of an export: some 64 KiB."""

TOGETHER = 500
"""Imported passages that are kept in one file of the inbox."""


class TransferService:
    """The `Transfer` port."""

    def __init__(self, store: Store, pipeline: Pipeline) -> None:
        self._store = store
        self._pipeline = pipeline

    async def export(self, format: ExportFormat) -> AsyncGenerator[bytes, None]:
        snapshot = self._store.snapshot()
        lines = export_lines(snapshot) if format is ExportFormat.JSONL else graphml_lines(snapshot)

        def chunk() -> bytes:
            return "".join(f"{line}\n" for line in islice(lines, LINES)).encode("utf-8", "replace")

        chunks: Iterator[bytes] = iter(chunk, b"")
        if format is ExportFormat.IGRAPH:
            chunks = packed(chunks)
        while part := await asyncio.to_thread(next, chunks, b""):
            yield part

    async def import_openie(self, chunks: AsyncIterator[bytes]) -> ImportResponse:
        with tempfile.NamedTemporaryFile(prefix="hippod-import-") as file:
            async for chunk in chunks:
                await asyncio.to_thread(file.write, chunk)
            file.flush()
            try:
                documents, triples, skipped = await asyncio.to_thread(_read, Path(file.name))
            except RecordedFormatError as error:
                raise Invalid(str(error).replace(file.name, "The body")) from error
        for start in range(0, len(documents), TOGETHER):
            await self._pipeline.add(documents[start : start + TOGETHER], wait=True)
        await self._pipeline.drained()
        return ImportResponse(passages=len(documents), triples=triples, skipped=skipped)

    async def verify(self) -> VerifyResponse:
        found = await asyncio.to_thread(verify, self._store)
        return VerifyResponse(
            commit=found.commit, lines=found.lines, synonym_recall=found.synonym_recall, problems=found.problems
        )

    async def backup(self, directory: str) -> BackupResponse:
        try:
            made = await asyncio.to_thread(backup, self._store, Path(directory))
        except (StoreError, OSError) as error:
            detail = str(error)
            if isinstance(error, OSError) and error.errno in (EROFS, EACCES, EPERM):
                detail += "; the daemon writes it, so name a directory that its user and its unit may write to"
            raise Conflict(detail, errors=[FieldError(field="directory", message=detail)]) from error
        return BackupResponse(directory=directory, commit=made.commit, files=made.files, bytes=made.bytes)


def _read(path: Path) -> tuple[list[Added], int, int]:
    """One document a passage, how many triples they state, and how many were malformed."""
    documents: dict[str, Added] = {}
    stated = skipped = 0
    for passage in read_recorded(path):
        if passage.problem is not None:
            skipped += 1
            continue
        skipped += passage.skipped
        stated += len(passage.triples)
        content = f"{passage.title}\n{passage.text}".encode("utf-8", "surrogatepass")
        uri = added_uri(f"import/{blake2b(content, digest_size=8).hexdigest()}")
        text = json.dumps({"title": passage.title, "text": passage.text, "triples": passage.triples})
        documents[uri] = Added(uri, text, whole=True)
    return list(documents.values()), stated, skipped
