"""Turns events of followed folders into work, and reports committed positions back to the folders."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from consumers.folder import path_of
from consumers.parsing import certainly_reads_alike
from consumers.types import EMPTY, FileChanged, FileEvent, FileMoved, FileRemoved, Fingerprint
from daemon.pipeline.commit.batching import DocumentsByFile
from daemon.pipeline.commit.commit_queue import CommitQueue
from daemon.pipeline.incoming.intake import Intake
from daemon.pipeline.ownership import Owners
from daemon.pipeline.work_items import Change, DocumentChange, FileTakenOver, Urgency
from store.store import Store
from store.types import Batch, Document, State

PositionCommitted = Callable[[str, Fingerprint | None], None]
"""Called with a file's URI and its position in the store, None where the store has none."""


class FileEvents:
    """`emit` and `touched` are called in a folder's own thread, all else on the event loop."""

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
        """Positions of files whose content is as it was, which wait for a commit to go along with."""
        self._in_batch: dict[str, Any] = {}
        """Those of them that the batch under way takes along."""

    def listen(self, source: str, committed: PositionCommitted) -> None:
        """`committed` is called for each file of `source` whose position is committed."""
        self._listeners[source] = committed

    def take_over(self, source: str, files: Iterable[str]) -> None:
        """What `files` hold is `source`'s: documents that another source has become its own, and nothing is read for that.

        Called before other work for these files waits, as this would take its place. What comes later takes the place of
        this, and gives the documents the source too or removes them.
        """
        for uri in files:
            for each in self._documents_by_file.of(uri):
                if (document := self._store.document(each)) is not None and document.source != source:
                    self._intake.put(uri, FileTakenOver(uri, source), source, urgency=Urgency.BULK)
                    break

    def emit(self, event: FileEvent) -> None:
        """Takes an event."""
        self._loop.call_soon_threadsafe(self.take, event)

    def touched(self, uri: str, fingerprint: Fingerprint) -> None:
        """A file has another mtime and the same content: nothing to read, its position goes along with the next commit."""
        self._loop.call_soon_threadsafe(self.touch, uri, fingerprint)

    def touch(self, uri: str, fingerprint: Fingerprint) -> None:
        empty = {} if self._documents_by_file.count(uri) else {EMPTY: True}
        self._touched[uri] = fingerprint.to_json() | empty

    def take(self, event: FileEvent) -> None:
        if not self._owners.owns(event.source, event.uri):
            return  # a folder within this one is followed by itself, through a link: it tells of its files
        urgency = Urgency.BULK if not isinstance(event, FileRemoved) and event.scanned else Urgency.FRESH
        if isinstance(event, FileMoved):
            self._take_move(event, urgency)
        else:
            self._intake.put(event.uri, event, event.source, urgency=urgency)

    def _take_move(self, event: FileMoved, urgency: Urgency) -> None:
        """The file's documents get their new URIs at once, and are read again where the new name may make others of them.

        Nothing is extracted again: reading finds the passages that are there.
        """
        documents = self._movable_documents(event)
        titles = [document.title for document in documents]
        known = bool(documents) and certainly_reads_alike(path_of(event.old_uri), event.path, titles)
        if documents:
            # Without a position where it is to be read: after a restart the file must not count as read.
            positions = {event.uri: event.fingerprint.to_json()} if known else {}
            work = self._intake.put(event.uri, event, event.source, urgency=urgency)
            if self._intake.take(work) is not None:
                # A new file under the old name must come after it.
                self._commits.put_now(DocumentChange(work, positions=positions))
        else:
            self._intake.put(event.old_uri, FileRemoved(event.old_uri, event.source), event.source, urgency=urgency)
        if not known:
            changed = FileChanged(event.uri, event.path, event.source, event.fingerprint)
            self._intake.put(event.uri, changed, event.source, urgency=urgency)

    def _movable_documents(self, event: FileMoved) -> list[Document]:
        """The file's documents; none where work for one of the names comes between, or where one of them was not indexed,
        as that one is to be tried anew."""
        if self._intake.busy(event.old_uri) or self._intake.busy(event.uri):
            return []
        documents = [self._store.document(uri) for uri in self._documents_by_file.of(event.old_uri)]
        indexed = [each for each in documents if each is not None and each.state is State.INDEXED]
        return indexed if len(indexed) == len(documents) else []

    def batch_positions(self) -> dict[str, Any]:
        """The positions of touched files for the batch that is being made.

        None of a file that is to be read again: with that position, its earlier document would count as the new content's.
        """
        self._in_batch = {uri: position for uri, position in self._touched.items() if not self._intake.busy(uri)}
        return self._in_batch

    def committed(self, changes: Sequence[Change], batch: Batch) -> None:
        """A batch is committed. Not when it is made: it may be made several times before."""
        for uri, position in batch.positions.items():
            # A position that came since stays; one of a file that was read or removed has been overtaken.
            if self._in_batch.get(uri) is not position or self._touched.get(uri) is position:
                self._touched.pop(uri, None)
        for change in changes:
            if isinstance(change, DocumentChange) and (listener := self._listeners.get(change.work.source)):
                for uri, position in change.positions.items():
                    listener(uri, Fingerprint.from_json(position) if position else None)
