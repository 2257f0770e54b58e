"""Makes one batch from changes: determines which documents each task replaces, moves and removes. Reports each commit to
clients, the log, the sources, and the work that waits for the commit."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog

from consumers.failure_codes import FailureCode
from consumers.records.record import Record
from consumers.types import EMPTY, FileMoved, FileRemoved
from daemon.contract.status import EventName
from daemon.observe.metrics import DOCUMENTS, FAILURES
from daemon.pipeline.commit.content_index import DocumentsByFile
from daemon.pipeline.document_changes import unchanged
from daemon.pipeline.folder_events import FileEvents
from daemon.pipeline.incoming.inbox import Inbox
from daemon.pipeline.ownership import NotOwner, Owners
from daemon.pipeline.records import RemovedRecords, is_overtaken, record_of
from daemon.pipeline.work_items import (
    Acknowledgement,
    Change,
    DocumentChange,
    ExtractionsFound,
    FileTakenOver,
    Postponed,
    RemoveDocument,
    Task,
    Work,
    container_uri,
    merged_positions,
)
from store.log.extraction_costs import add_costs
from store.store import CommitResult, Store
from store.types import Batch, Document, Extraction, ExtractionCosts, PassageText, State

log = structlog.get_logger()

Publish = Callable[..., None]
"""The type of `daemon.api.event_hub.EventHub.publish`."""


class Batches:
    """Makes the batches of a pipeline and reports their commits. Use on the event loop only."""

    def __init__(
        self,
        store: Store,
        documents_by_file: DocumentsByFile,
        owners: Owners,
        inbox: Inbox,
        file_events: FileEvents,
        publish: Publish,
        on_commit: Callable[[Sequence[str]], None],
        finish: Callable[[Work], None],
    ) -> None:
        """`on_commit` is called with the passages that may need extraction, before tasks that wait for the commit continue.
        `finish` is called with completed work."""
        self._store = store
        self._documents_by_file = documents_by_file
        self._owners = owners
        self._inbox = inbox
        self._file_events = file_events
        self._publish = publish
        self._on_commit = on_commit
        self._finish = finish
        self._removed = RemovedRecords(store.positions)

    def make(self, changes: Sequence[Change]) -> Batch:
        """Returns one batch from changes that touch different keys; drops changes that exceed their source's rights."""
        permitted = [change for change in changes if self._is_permitted(change)]
        batch = make_batch(self._store, self._documents_by_file, permitted)
        touched = self._file_events.batch_positions()
        delivered = merged_positions(_acknowledgements(changes))
        removals = self._removed.positions(_applied_records(self._store, permitted))
        added = self._inbox.positions([place for work in _ended_work(changes) for place in work.inbox_places])
        return replace(batch, positions={**touched, **batch.positions, **removals, **delivered, **added})

    def _is_permitted(self, change: Change) -> bool:
        """Returns whether the change's source owns all documents that it writes and removes, and its work has not failed. Every
        change passes this check."""
        if isinstance(change, DocumentChange) and change.work.failed:
            return False
        # A client's right to remove is checked when the request arrives.
        if isinstance(change, ExtractionsFound) or isinstance(change.work.task, RemoveDocument):
            return True
        task = change.work.task
        moved = (task.old_uri,) if isinstance(task, FileMoved) else ()
        try:
            for uri in (change.work.key, *moved, *(document.uri for document in change.documents)):
                self._owners.check(change.work.source, uri)
        except NotOwner as refused:
            log.warning("change_refused", uri=change.work.key, source=change.work.source, error=refused)
            return False
        return True

    def committed(self, changes: Sequence[Change], batch: Batch, committed: CommitResult, took_ms: float) -> None:
        """Updates the indexes, and notifies everything that waits for the commit."""
        self._documents_by_file.update(batch)
        self._removed.committed(batch.positions)
        _report_documents(batch, committed, self._publish)
        self._on_commit([ref.passage for each in batch.documents for ref in each.passages if ref.triples is None])
        self._file_events.committed(
            batch.positions,
            [(change.work.source, change.positions) for change in changes if isinstance(change, DocumentChange)],
        )
        for acknowledgement in _acknowledgements(changes):
            acknowledgement.done()
        for work in _ended_work(changes):
            self._finish(work)
        _report_commit(batch, committed, took_ms, self._publish)


def make_batch(store: Store, documents_by_file: DocumentsByFile, changes: Sequence[Change]) -> Batch:
    """Returns one batch from changes that touch different keys."""
    documents: list[Document] = []
    removed: list[str] = []
    texts: dict[str, PassageText] = {}
    extractions: dict[str, Extraction] = {}
    supplied_costs: ExtractionCosts = {}
    positions: dict[str, Any] = {}
    for change in changes:
        if isinstance(change, ExtractionsFound):
            extractions.update(change.extractions)
            continue
        work = change.work
        if is_overtaken(store, work.task):
            continue
        if isinstance(work.task, FileMoved):
            moved = _renamed_documents(store, documents_by_file, work.task)
            documents += moved
            removed += sorted(documents_by_file.of(work.task.old_uri))
            positions[work.task.old_uri] = None
        elif isinstance(work.task, FileTakenOver):
            documents += _taken_over(store, documents_by_file, work.task)
        elif isinstance(work.task, FileRemoved | RemoveDocument):
            uris = sorted(_removed_uris(documents_by_file, work.task.uri))
            gone = uris if isinstance(work.task, FileRemoved) else _in_sight(store, uris, work.task)
            removed += gone
            if isinstance(work.task, RemoveDocument) and work.task.found is not None and gone == uris:
                positions[work.key] = work.task.found.to_json()
        elif record_of(work.task) is not None and not change.documents and store.document(work.key) is not None:
            removed.append(work.key)
        # If two lines of a file have the same id, the last line counts, even if the store already contains the first.
        for document in {each.uri: each for each in change.documents}.values():
            if not unchanged(store.document(document.uri), document):
                documents.append(document)
                supplied_costs = add_costs(supplied_costs, change.supplied_costs)
            work.seen.add(document.uri)
        unread = documents_by_file.of(work.key) - work.seen
        if unread and change.final and not change.awaits_ocr and not _keeps_unnamed_documents(work.task):
            removed += sorted(unread - {document.uri for document in documents})
        texts.update(change.texts)
        extractions.update(change.extractions)
        positions.update(change.positions)
    positions.update(_empty_positions(store, documents_by_file, documents, removed, positions))
    return Batch(
        tuple(documents),
        tuple(removed),
        tuple(texts.values()),
        tuple(extractions.values()),
        positions=positions,
        supplied_costs=supplied_costs,
    )


def _empty_positions(
    store: Store,
    documents_by_file: DocumentsByFile,
    documents: Iterable[Document],
    removed: Iterable[str],
    positions: Mapping[str, Any],
) -> dict[str, Any]:
    """Returns the positions of followed files that have no document after this batch, each marked with `EMPTY`."""
    written, gone = {container_uri(document.uri) for document in documents}, set(removed)
    found = {}
    for file in {*positions, *map(container_uri, gone)}:
        position = positions[file] if file in positions else store.positions.get(file)
        if position is None or not file.startswith("file:"):
            continue
        if file not in written and documents_by_file.of(file) <= gone:
            found[file] = {**position, EMPTY: True}
    return found


def _keeps_unnamed_documents(task: Task) -> bool:
    """Whether the task keeps the documents of its file that it does not name."""
    return isinstance(task, FileRemoved | FileTakenOver | RemoveDocument | Postponed) or record_of(task) is not None


def _removed_uris(documents_by_file: DocumentsByFile, uri: str) -> set[str]:
    """Returns all documents of a file if `uri` is a file's URI, or only `uri` if it is the URI of a line."""
    return {uri} if container_uri(uri) != uri else documents_by_file.of(uri)


def _in_sight(store: Store, uris: Sequence[str], task: RemoveDocument) -> list[str]:
    """Returns the documents among `uris` that the client that requested the removal still sees."""
    sees = task.sees
    return [uri for uri in uris if sees is None or (document := store.document(uri)) is None or sees(document)]


def _taken_over(store: Store, documents_by_file: DocumentsByFile, task: FileTakenOver) -> list[Document]:
    """Returns the file's documents with their new source. Their passages stay; nothing is parsed."""
    found = (store.document(uri) for uri in sorted(documents_by_file.of(task.uri)))
    others = (document for document in found if document is not None and document.source != task.source)
    return [replace(document, source=task.source) for document in others]


def _renamed_documents(store: Store, documents_by_file: DocumentsByFile, task: FileMoved) -> list[Document]:
    """Returns the file's documents with their new URIs. Their passages stay; nothing is extracted or encoded again."""
    out = []
    for uri in sorted(documents_by_file.of(task.old_uri)):
        document = store.document(uri)
        if document is None:
            continue
        out.append(replace(document, uri=task.uri + uri[len(task.old_uri) :], source=task.source))
    return out


def _applied_records(store: Store, changes: Sequence[Change]) -> Iterator[Record]:
    for change in changes:
        if isinstance(change, DocumentChange) and not is_overtaken(store, change.work.task):
            record = record_of(change.work.task)
            if record is not None:
                yield record


def _acknowledgements(changes: Sequence[Change]) -> Iterator[Acknowledgement]:
    return (each for work in _ended_work(changes) for each in work.acknowledgements)


def _ended_work(changes: Sequence[Change]) -> Iterator[Work]:
    """Returns the work that these changes complete."""
    return (
        change.work
        for change in changes
        if isinstance(change, DocumentChange) and change.final and not change.work.failed
    )


def _report_documents(batch: Batch, committed: CommitResult, publish: Publish) -> None:
    commit, replaced = committed.seq, committed.replaced
    for document in batch.documents:
        DOCUMENTS.labels(document.state.value).inc()
        if document.state is not State.INDEXED:
            reason = document.code or FailureCode.OTHER
            FAILURES.labels(document.state.value, reason).inc()
            if document.state is State.FAILED:
                log.warning("document_failed", uri=document.uri, commit=commit, reason=reason)
            else:
                log.info("document_skipped", uri=document.uri, commit=commit, reason=reason)
        before = replaced.get(document.uri)
        left_out = [omission.text for omission in document.left_out]
        publish(
            document.state.value,
            document.uri,
            before=before,
            after=document,
            commit=commit,
            error=document.error,
            left_out=left_out,
        )
    for uri in batch.removed:
        DOCUMENTS.labels(State.REMOVED.value).inc()
        publish(State.REMOVED.value, uri, before=replaced.get(uri), commit=commit)


def _report_commit(batch: Batch, committed: CommitResult, took_ms: float, publish: Publish) -> None:
    publish(EventName.COMMIT, None, commit=committed.seq, documents=len(batch.documents), removed=len(batch.removed))
    log.info(
        "committed",
        commit=committed.seq,
        documents=len(batch.documents),
        removed=len(batch.removed),
        passages=committed.born,
        forgotten=committed.died,
        took_ms=round(took_ms, 1),
    )
