"""Turns events of followed folders into work, and reports committed positions to the folders' watchers."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from consumers.folder import path_of
from consumers.parsing import parses_alike
from consumers.types import EMPTY, FileChanged, FileEvent, FileMoved, FileRemoved, Fingerprint
from daemon.pipeline.commit.commit_queue import CommitQueue
from daemon.pipeline.commit.content_index import DocumentsByFile
from daemon.pipeline.incoming.intake import Intake
from daemon.pipeline.ownership import Owners
from daemon.pipeline.work_items import DocumentChange, FileTakenOver, Urgency, Work
from store.store import Store
from store.types import Document, State

PositionCommitted = Callable[[str, Fingerprint | None], None]
"""Called with a file's URI and the file's position in the store; None if the store has no position for it."""


class FileEvents:
    """Handles the events of followed folders. `emit` and `touched` run in a folder's thread, other methods on the event
    loop."""

    def __init__(
        self,
        store: Store,
        documents_by_file: DocumentsByFile,
        intake: Intake,
        commits: CommitQueue,
        owners: Owners,
    ) -> None:
        self._owners = owners
        self._store = store
        self._documents_by_file = documents_by_file
        self._intake = intake
        self._commits = commits
        self._loop = asyncio.get_running_loop()
        self._listeners: dict[str, PositionCommitted] = {}
        self._touched: dict[str, Any] = {}
        """New positions of files whose mtime changed but whose content did not; the next commit stores them."""
        self._in_batch: dict[str, Any] = {}
        """The positions in `_touched` that are part of the present batch."""

    def listen(self, source: str, committed: PositionCommitted) -> None:
        """Calls `committed` for each file of `source` whose position was committed."""
        self._listeners[source] = committed

    def take_over(self, source: str, files: Iterable[str]) -> None:
        """Assigns the documents of `files` to `source` if another source owned them, without parsing the files.

        Call before other work for these files is queued, because the reassignment would replace that work. Later work replaces
        the reassignment, and itself assigns the source or removes the documents.
        """
        for uri in files:
            for each in self._documents_by_file.of(uri):
                if (document := self._store.document(each)) is not None and document.source != source:
                    self._intake.put(Work(uri, FileTakenOver(uri, source), source, urgency=Urgency.BULK))
                    break

    def emit(self, event: FileEvent) -> None:
        """Accepts an event from a folder's thread."""
        with suppress(RuntimeError):  # the loop has ended; the next start finds the difference
            self._loop.call_soon_threadsafe(self.take, event)

    def touched(self, uri: str, fingerprint: Fingerprint) -> None:
        """Stores a file's new position with the next commit: its mtime changed, but not its content. Call from any thread."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.touch, uri, fingerprint)

    def touch(self, uri: str, fingerprint: Fingerprint) -> None:
        empty = {} if self._documents_by_file.count(uri) else {EMPTY: True}
        self._touched[uri] = fingerprint.to_json() | empty

    def take(self, event: FileEvent) -> None:
        if not self._owners.owns(event.source, event.uri):
            return  # a link leads to another followed folder, which emits the events of its files itself
        urgency = Urgency.BULK if not isinstance(event, FileRemoved) and event.scanned else Urgency.FRESH
        if isinstance(event, FileMoved):
            self._take_move(event, urgency)
        else:
            self._intake.put(Work(event.uri, event, event.source, urgency=urgency))

    def _take_move(self, event: FileMoved, urgency: Urgency) -> None:
        """Renames the file's documents at once, and parses the file again if its new name may change the result.

        Parsing again yields the passages that exist already, so nothing is extracted again.
        """
        documents = self._movable_documents(event)
        titles = [document.title for document in documents]
        known = bool(documents) and parses_alike(path_of(event.old_uri), event.path, titles)
        if documents:
            # If the file must be parsed, store no position yet: after a restart the file must not count as parsed.
            positions = {event.uri: event.fingerprint.to_json()} if known else {}
            work = self._intake.put(Work(event.uri, event, event.source, urgency=urgency))
            if self._intake.take(work) is not None:
                # Queue the change now, before work for a new file with the old name.
                self._commits.put_now(DocumentChange(work, positions=positions))
        else:
            removal = FileRemoved(event.old_uri, event.source)
            self._intake.put(Work(event.old_uri, removal, event.source, urgency=urgency))
        if not known:
            changed = FileChanged(event.uri, event.path, event.source, event.fingerprint)
            self._intake.put(Work(event.uri, changed, event.source, urgency=urgency))

    def _movable_documents(self, event: FileMoved) -> list[Document]:
        """Returns the file's documents; [] if work for the old or new name waits or runs.

        Also returns [] if one of the documents is not indexed, because the file must then be parsed again.
        """
        if self._intake.busy(event.old_uri) or self._intake.busy(event.uri):
            return []
        documents = [self._store.document(uri) for uri in self._documents_by_file.of(event.old_uri)]
        indexed = [each for each in documents if each is not None and each.state is State.INDEXED]
        return indexed if len(indexed) == len(documents) else []

    def batch_positions(self) -> dict[str, Any]:
        """Returns the positions of touched files for the batch that is being made.

        Omits files that wait to be parsed: with a committed position, a file would count as parsed.
        """
        self._in_batch = {uri: position for uri, position in self._touched.items() if not self._intake.busy(uri)}
        return self._in_batch

    def committed(
        self, batch: Mapping[str, Any | None], changes: Iterable[tuple[str, Mapping[str, Any | None]]]
    ) -> None:
        """Drops the positions that a batch has committed, and notifies listeners. Call it after each commit.

        `batch` contains the batch's positions, `changes` the source and the positions of each change in the batch.
        """
        for uri, position in batch.items():
            # Keep a position that arrived during the commit; drop positions of files that were parsed or removed.
            if self._in_batch.get(uri) is not position or self._touched.get(uri) is position:
                self._touched.pop(uri, None)
        for source, positions in changes:
            if (listener := self._listeners.get(source)) is not None:
                for uri, position in positions.items():
                    if uri in batch:  # false if the change was refused
                        listener(uri, Fingerprint.from_json(position) if position else None)
