"""Turns a task into changes: parses in worker processes and converts the result to the store's types."""

import asyncio
import base64
import json
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

from consumers.failure_codes import FailureCode
from consumers.folder.tree.mounts import Absence, absence_of
from consumers.openat import FileAccess
from consumers.parsing import ParseSummary
from consumers.splitting import SplitSettings
from consumers.types import FileChanged, FileRefused, FileRemoved, Fingerprint, ParsedDocument
from daemon.parser_pool.pool import ParserPool, Turn
from daemon.pipeline.document_changes import delivered_change, document_change, failed_document, imported_passage
from daemon.pipeline.work_items import (
    AddedDocument,
    DeliveredDocument,
    DocumentChange,
    Postponed,
    RetryFile,
    Urgency,
    Work,
)

UNSEEN_POSITION = Fingerprint(0, 0, 0)
"""Position of a file that is refused without being opened. It differs from all real positions, and marks the file as known
after a restart."""

NOT_FOLLOWED = "its folder is not followed any more, so it is not read; follow the folder again, or `hippoctl rm` it"

CHUNK_PASSAGES = 64
"""Number of parsed passages that are indexed together."""


class DocumentReader:
    """Parses the documents of tasks. A file is opened only if a folder above it is followed."""

    def __init__(self, pool: ParserPool, settings: SplitSettings) -> None:
        self._pool = pool
        self._settings = settings
        self._folders: dict[str, FileAccess] = {}

    def follow_folder(self, access: FileAccess) -> None:
        """Allows files below the folder `access.root` to be opened."""
        assert access.root is not None
        self._folders[os.fsdecode(access.root)] = access

    async def read(
        self, work: Work, is_superseded: Callable[[], bool] = lambda: False
    ) -> AsyncIterator[DocumentChange]:
        """Yields the changes of one task; the last change is `final`. A document that cannot be parsed yields a change too.

        Raises SetAside before the first change if parsing takes so long that other work needs the worker process, or if the
        work is for OCR and `is_superseded`.
        """
        task = work.task
        if isinstance(task, FileChanged | RetryFile):
            source, folder = self._above(task.path)
            if folder is None:  # a retry of a file in a folder that is no longer followed
                refused = failed_document(
                    task.uri, task.source, NOT_FOLLOWED, FailureCode.GONE, work.attempts, skipped=True
                )
                # Store no position, so that the file counts as new if the folder is followed again.
                yield DocumentChange(work, [refused], positions={work.key: None})
                return
            work.source = source
            fingerprint: Fingerprint | None = None
            if isinstance(task, FileChanged):
                fingerprint, inode = task.fingerprint, task.fingerprint.inode
            elif await asyncio.to_thread(absence_of, task.path, os.fsencode(source)) is not Absence.REMOVED:
                inode = task.checked_inode
            else:
                # The file was removed before this retry; no further event will report the removal.
                yield DocumentChange(work, positions={work.key: None})
                return
            access = replace(folder, checked_inode=inode)
            stream = self._pool.parse(task.path, task.uri, self._settings, _turn(work, is_superseded), access)
            async with aclosing(stream) as items:
                async for change in self._outcomes(work, items, fingerprint, None, folder=folder):
                    yield change
        elif isinstance(task, FileRefused):
            refused = failed_document(
                task.uri,
                task.source,
                task.refusal.reason,
                task.refusal.code,
                work.attempts,
                skipped=not task.refusal.may_recover,
            )
            yield DocumentChange(work, [refused], positions={task.uri: (task.fingerprint or UNSEEN_POSITION).to_json()})
        elif isinstance(task, AddedDocument):
            async for change in self._added(work, task, _turn(work, is_superseded)):
                yield change
        elif isinstance(task, DeliveredDocument):
            yield delivered_change(work, task)
        elif isinstance(task, FileRemoved):
            yield DocumentChange(work, positions={work.key: None})
        else:
            # The file now has another source, or a client removed a document whose file still exists. Keep the stored position,
            # or the position of a waiting change (`make_batch`), so that the file is parsed only when it changes again.
            yield DocumentChange(work)

    def _above(self, path: bytes) -> tuple[str, FileAccess | None]:
        """Returns the source and the followed folder that contain `path` now. The task may be from a run with another
        configuration."""
        for above in Path(os.fsdecode(path)).parents:
            folder = self._folders.get(str(above))
            if folder is not None:
                return str(above), folder
        return "", None

    async def _added(self, work: Work, task: AddedDocument, turn: Turn) -> AsyncIterator[DocumentChange]:
        value = await asyncio.to_thread(json.loads, task.text)
        if task.whole:
            yield document_change(work, [imported_passage(task.uri, value)], task.text)
        elif "content_base64" in value:
            async for change in self._uploaded(work, task, value, turn):
                yield change
        else:
            yield document_change(
                work, [await self._pool.parse_json(task.text, task.uri, self._settings, turn)], task.text
            )

    async def _uploaded(
        self, work: Work, task: AddedDocument, value: dict[str, Any], turn: Turn
    ) -> AsyncIterator[DocumentChange]:
        with tempfile.NamedTemporaryFile(prefix="hippod-") as file:
            try:
                await asyncio.to_thread(_write_decoded, file, value["content_base64"])
            except (ValueError, TypeError) as error:
                read = ParsedDocument(
                    task.uri,
                    error=f'"content_base64" is not base64 ({error}); send the file\'s bytes encoded',
                    code=FailureCode.JSON,
                )
                yield document_change(work, [read], None)
                return
            name = os.fsencode(str(value.get("filename", "")))
            stream = self._pool.parse(os.fsencode(file.name), task.uri, self._settings, turn, name=name)
            async with aclosing(stream) as items:
                async for change in self._outcomes(work, items, None, task.text, value.get("title")):
                    yield change

    async def _outcomes(
        self,
        work: Work,
        items: AsyncIterator[ParsedDocument | ParseSummary],
        position: Fingerprint | None,
        payload: str | None,
        title: Any = None,
        folder: FileAccess | None = None,
    ) -> AsyncIterator[DocumentChange]:
        """Yields changes of some dozens of passages each, so that a large file is never in memory completely.

        The last change contains the position of a followed file: the position of the parsed content, or `position` if none was
        parsed. Ignores an error while the drive of `folder` is unmounted: the file's documents stay. No position is committed,
        so the folder's source will emit the file again.
        """
        gathered: list[ParsedDocument] = []
        size = 0
        unmounted = awaits_ocr = False
        async for item in items:
            if isinstance(item, ParseSummary):
                awaits_ocr = item.awaits_ocr
                # If the file changed while it was parsed, omit the digest; the next scan then parses the file again.
                digest = None if item.changed else item.digest
                position = Fingerprint(item.size, item.mtime_ns, item.inode, digest)
                continue
            if (
                isinstance(work.task, FileChanged | RetryFile)
                and folder
                and item.error is not None
                and not item.skipped
            ):
                absence = await asyncio.to_thread(absence_of, work.task.path, os.fsencode(work.source))
                if absence is Absence.UNMOUNTED:
                    unmounted = True
                    continue
                if absence is Absence.REMOVED and position is not None:
                    position = replace(position, digest=None)  # not parsed, so a file that returns must be checked
            gathered.append(replace(item, title=title) if isinstance(title, str) and title else item)
            size += len(item.passages)
            if size >= CHUNK_PASSAGES:
                yield document_change(work, gathered, payload, final=False)
                gathered, size = [], 0
        last = document_change(work, gathered, payload)
        last.awaits_ocr = awaits_ocr
        if unmounted:
            work.task = Postponed()
            last.positions = {work.key: None}
        elif folder is not None and position is not None:
            # While pictures wait for OCR, store no reader version, so that the next start parses the file again.
            last.positions = {work.key: position.to_json() | ({"reader": None} if awaits_ocr else {})}
        yield last


def _write_decoded(file: "tempfile._TemporaryFileWrapper[bytes]", content: str) -> None:
    file.write(base64.b64decode(content, validate=True))
    file.flush()


def _turn(work: Work, is_superseded: Callable[[], bool]) -> Turn:
    return Turn(work.source, work.urgency is Urgency.FRESH, work.slow, work.recognise, is_superseded)
