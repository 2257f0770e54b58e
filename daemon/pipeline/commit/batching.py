"""Builds one batch from changes: determines which documents each task replaces, moves and removes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from consumers.types import EMPTY, FileMoved, FileRemoved
from daemon.pipeline.document_mapping import unchanged
from daemon.pipeline.records import is_overtaken, record_of
from daemon.pipeline.work_items import (
    Change,
    ExtractionsFound,
    FileTakenOver,
    Postponed,
    RemoveDocument,
    Task,
    container_uri,
)
from store.log.extraction_costs import add_costs
from store.store import Store
from store.types import Batch, Document, Extraction, ExtractionCosts, PassageText


class DocumentsByFile:
    """The documents of each file, in memory because the store cannot look up a URI prefix."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._uris: dict[str, set[str]] = {}
        for document in documents:
            self.add(document.uri)

    def __iter__(self) -> Iterator[str]:
        """Iterates over the URIs of files with documents, and the URIs of documents that belong to no file."""
        return iter(self._uris)

    def add(self, uri: str) -> None:
        self._uris.setdefault(container_uri(uri), set()).add(uri)

    def discard(self, uri: str) -> None:
        key = container_uri(uri)
        uris = self._uris.get(key)
        if uris is not None:
            uris.discard(uri)
            if not uris:
                del self._uris[key]

    def update(self, batch: Batch) -> None:
        """Applies the additions and removals of a commit."""
        for document in batch.documents:
            self.add(document.uri)
        for uri in batch.removed:
            self.discard(uri)

    def count(self, key: str) -> int:
        """Returns the number of documents in a file. May be called from any thread."""
        return len(self._uris.get(key, ()))

    def of(self, key: str) -> set[str]:
        """Returns the URIs of the documents in the file `key`, or of the document `key`."""
        return self._uris.get(key, set())


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
        if unread and change.final and not change.awaits_ocr and not _removes_itself(work.task):
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


def _removes_itself(task: Task) -> bool:
    """Whether the task keeps the documents of its file that it does not name."""
    return isinstance(task, FileRemoved | FileTakenOver | RemoveDocument | Postponed) or record_of(task) is not None


def _removed_uris(documents_by_file: DocumentsByFile, uri: str) -> set[str]:
    """Returns all documents of a file if `uri` is the file's, or only `uri` if it is a line's."""
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
