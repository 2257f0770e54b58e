"""Clients' requests about documents: `add`, `rm`, `ls`, `show`, `retry`, `confirm`, and the page's overview."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import nlargest
from itertools import islice, takewhile
from typing import Any

from consumers.folder import path_of
from consumers.types import Fingerprint
from daemon.contract.base import FieldError, utc_time
from daemon.contract.documents import (
    AddResponse,
    ConfirmRequest,
    ConfirmResponse,
    DocumentList,
    ListRequest,
    RemoveResponse,
    RemoveSourceRequest,
    RemoveSourceResponse,
    RetryRequest,
    RetryResponse,
    ShowResponse,
)
from daemon.contract.http.routes import Need, Route, served
from daemon.contract.query import ADDED_POSITION
from daemon.contract.scope import ClientScope, Scope, ScopeList
from daemon.contract.status import GrowthPoint, Overview
from daemon.errors import Conflict, Invalid, NotFound
from daemon.pipeline.extraction.queue import ExtractionQueue
from daemon.pipeline.ownership import ADDED
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.work_items import AddedDocument, RetryFile, container_uri
from daemon.services.documents.added_documents import check_document, document_labels, is_imported
from daemon.services.documents.document_labels import labelled_uri
from daemon.services.documents.document_references import document_entry
from daemon.services.documents.document_states import CurrentStates
from daemon.services.documents.show import show
from daemon.services.freshness import ClientPositions
from daemon.services.scopes import ScopeService
from daemon.sources.base import Source
from store.store import Store
from store.types import Document, State

GROWTH_POINTS_MAX = 400
"""Maximum points of the growth curve; a chart or slider can show fewer."""
RECENT_DOCUMENTS = 40
FIELD_ERRORS_MAX = 20
"""Maximum invalid documents whose errors a response contains. Further invalid documents are only counted."""


Holds = Callable[[Document], bool]


@dataclass(slots=True)
class _SortedDocuments:
    """A request's documents, separated into additions and removals. Of several documents with the same URI, the last counts."""

    added: list[AddedDocument] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    uris: list[str] = field(default_factory=list)
    """URIs of all documents of the request: first of additions, then of removals; may repeat."""
    wrong: int = 0
    errors: list[FieldError] = field(default_factory=list)


class DocumentService:
    """Serves the requests of clients about documents. For a request, only documents in `scope` exist."""

    def __init__(
        self,
        store: Store,
        pipeline: Pipeline,
        extraction_queue: ExtractionQueue,
        states: Callable[[], CurrentStates],
        scopes: ScopeService,
        positions: ClientPositions,
        sources: Sequence[Source] = (),
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._extraction_queue = extraction_queue
        self._states = states
        self._scopes = scopes
        self._positions = positions
        self._sources = sources
        self._sorted_uris: tuple[int, list[str]] = (-1, [])
        """The number of a commit, and the sorted URIs of its documents."""

    async def add(self, documents: Sequence[dict[str, Any]], scope: Scope | None = None) -> AddResponse:
        """Adds all documents or none, then removes documents marked as deleted; returns once a crash cannot lose the additions.

        Raises Invalid with the first wrong fields. Raises NotReady if hippod stops before the removals. The client then repeats
        the request; adding a document again changes nothing.
        """
        self._pipeline.inbox.refuse_too_many(len(documents))
        labels = frozenset(scope.visible) if isinstance(scope, ClientScope) else None
        sorted_documents = await asyncio.to_thread(_sort_documents, documents, labels)
        if sorted_documents.wrong:
            raise Invalid(
                f"{sorted_documents.wrong} of {len(documents)} documents are not valid; none was accepted",
                errors=sorted_documents.errors,
            )
        position = {}
        holds = self._scopes.limit(scope)
        replaced = sum(bool(self._in_sight(each.uri, holds)) for each in sorted_documents.added)
        if sorted_documents.added:
            ticket = await self._pipeline.inbox.add(sorted_documents.added)
            if isinstance(scope, ClientScope):
                ticket = self._positions.position(scope.client, ticket)
            position = {ADDED_POSITION: ticket}
        if sorted_documents.gone:
            await self._pipeline.remove(sorted_documents.gone)
        return AddResponse(
            accepted=len(documents), documents=sorted_documents.uris, replaced=replaced, position=position
        )

    async def remove(self, uris: Sequence[str], scope: Scope | None = None) -> RemoveResponse:
        holds = self._scopes.limit(scope)
        removed = {uri: self._in_sight(uri, holds) for uri in uris}
        await self._pipeline.remove([each for found in removed.values() for each in found], holds)
        missing = [uri for uri, found in removed.items() if not found]
        return RemoveResponse(removed=len(removed) - len(missing), missing=len(missing), missing_uris=missing)

    @served("POST", Route.REMOVE_SOURCE, Need.WRITE, 404, 409)
    async def remove_source(self, request: RemoveSourceRequest, scope: Scope | None = None) -> RemoveSourceResponse:
        """Remove the documents that a source has committed since a time.

        Raises Conflict for a followed folder, whose files would be parsed again.
        """
        holds = self._scopes.limit(scope)
        in_sight = await asyncio.to_thread(self._documents_of, request.source, holds)
        named = [each for each in self._sources if each.name == request.source]
        known = request.source == ADDED or (named and self._scopes.sources(scope)(request.source))
        if not in_sight and not known:
            raise NotFound(
                f"No source is named {request.source[:500]!r}; `hippoctl status` names them, and `added` is one."
            )
        if any(each.redelivers for each in named):
            raise Conflict(
                f"{request.source[:500]!r} is a followed folder, whose files would be parsed again: remove the files, or take "
                "its [[folder]] out of the configuration and restart hippod."
            )
        uris = [each.uri for each in in_sight if committed_since(each, request.committed_since)]
        if request.dry_run:
            return RemoveSourceResponse(source=request.source, documents=uris, removed=0)
        await self._pipeline.remove(uris, holds)
        gone = sum(self._store.document(uri) is None for uri in uris)
        return RemoveSourceResponse(source=request.source, documents=uris, removed=gone)

    def _documents_of(self, source: str, holds: Holds | None) -> list[Document]:
        documents = (each for each in self._store.documents() if each.source == source)
        return sorted((each for each in documents if holds is None or holds(each)), key=lambda each: each.uri)

    def _in_sight(self, uri: str, holds: Holds | None) -> list[str]:
        """Returns the URIs for `uri` that `holds` accepts: the document, or the visible lines of a file."""
        if holds is None:
            return [uri] if self._exists(uri) else []
        named = {uri, *self._pipeline.documents_by_file.of(uri)}
        documents = [document for each in sorted(named) if (document := self._store.document(each)) is not None]
        source = documents[0].source if documents else self._pipeline.intake.source_of(container_uri(uri))
        if source is not None and holds(Document(uri, source)):
            return [uri]  # the whole source is visible, including documents that are being parsed
        return [document.uri for document in documents if holds(document)]

    def _exists(self, uri: str) -> bool:
        if self._store.document(uri) is not None or self._pipeline.intake.busy(container_uri(uri)):
            return True
        return container_uri(uri) == uri and bool(self._pipeline.documents_by_file.of(uri))

    @served("GET", Route.DOCUMENTS, Need.READ)
    async def documents(self, request: ListRequest) -> DocumentList:
        """List documents and their states."""
        holds = self._scopes.limit(request.scope)
        return await asyncio.to_thread(self._list, request, self._states(), holds)

    async def show(self, key: str, limit: int, scope: Scope | None = None) -> ShowResponse | None:
        states = self._states()
        return await asyncio.to_thread(self._show, key, limit, states, scope)

    def _show(self, key: str, limit: int, states: CurrentStates, scope: Scope | None) -> ShowResponse | None:
        memory = self._store.document_snapshot() if scope is None else self._scopes.memory(scope)
        return show(memory, self._store.extraction_state, key, limit, states)

    @served("GET", Route.SCOPES, Need.READ)
    async def scopes(self, scope: Scope | None = None) -> ScopeList:
        """List the sources, labels and folders that a scope may name."""
        return await asyncio.to_thread(self._scopes.named, scope)

    async def overview(self, scope: Scope | None = None) -> Overview:
        """Returns the memory's growth and its newest documents, for the page."""
        return await asyncio.to_thread(self._overview, scope)

    def _overview(self, scope: Scope | None) -> Overview:
        holds = self._scopes.limit(scope)
        living = (
            document
            for document in self._store.documents()
            if document.state is not State.REMOVED and (holds is None or holds(document))
        )
        recent = nlargest(RECENT_DOCUMENTS, living, key=lambda document: document.committed_at or 0.0)
        growth = [
            GrowthPoint(
                commit=each.commit,
                time=datetime.fromtimestamp(each.time, UTC),
                passages=each.passages,
                phrases=each.phrases,
                triples=each.triples,
            )
            for each in (self._store.growth(GROWTH_POINTS_MAX) if scope is None else ())  # for the whole memory only
        ]
        return Overview(growth=growth, recent=[document_entry(document) for document in recent])

    @served("POST", Route.RETRY, Need.WRITE, body_required=False)
    async def retry(self, request: RetryRequest, scope: Scope | None = None) -> RetryResponse:
        """Try failed documents again.

        Retries all failed documents in `scope` if the request names no documents.
        """
        uris = request.uris
        holds = self._scopes.limit(scope)
        named = None if uris is None else set(uris)
        missing = [uri for uri in uris or () if not self._in_sight(uri, holds)]
        retriable = await asyncio.to_thread(self._states().retriable) if uris else set()
        sound = [uri for uri in uris or () if uri not in missing and uri not in retriable]
        documents = await self.retry_failed(
            lambda document: (
                (holds is None or holds(document))
                and (named is None or document.uri in named or container_uri(document.uri) in named)
            )
        )
        return RetryResponse(
            requeued=documents + self._retry_passages(named, holds), missing_uris=missing, not_failed_uris=sound
        )

    @served("POST", Route.CONFIRM, Need.ADMIN, 404, 409)
    async def confirm(self, request: ConfirmRequest) -> ConfirmResponse:
        """Confirm the pending removals of a source.

        Raises NotFound if the source does not exist, Conflict if it has no pending removals.
        """
        source = request.source
        named = [each for each in self._sources if each.name == source]
        if not named:
            raise NotFound(f"No source is named {source[:500]!r}; `hippoctl status` names them.")
        documents = sum(each.confirm() for each in named)
        if not documents:
            raise Conflict(f"The source {source[:500]!r} has no pending removals.")
        return ConfirmResponse(source=source, documents=documents)

    async def retry_due(self) -> None:
        """Retries failed documents and passages that are due."""
        now = time.time()
        await self.retry_failed(lambda document: document.next_try is not None and document.next_try <= now)
        self._extraction_queue.retry(lambda _id, due: due is not None and due <= now)

    def _list(self, request: ListRequest, states: CurrentStates, holds: Holds | None) -> DocumentList:
        first = request.prefix if request.after is None else max(request.prefix, request.after + "\0")
        uris = takewhile(lambda uri: uri.startswith(request.prefix), states.uris(first, self._stored_uris()))
        documents = (
            document
            for document in filter(None, map(states.document, uris))
            if (request.state is None or states.state(document) == request.state) and (holds is None or holds(document))
        )
        page = list(islice(documents, request.limit + 1))
        entries = [states.entry(document) for document in page[: request.limit]]
        return DocumentList(documents=entries, next=entries[-1].uri if len(page) > request.limit else None)

    def _stored_uris(self) -> list[str]:
        """Returns the URIs of the store's documents in order. Sorts the URIs once per commit, not once per page of a list."""
        commit = self._store.snapshot().commit
        known, uris = self._sorted_uris
        if known != commit:
            uris = [document.uri for document in self._store.documents()]
            self._sorted_uris = commit, uris
        return uris

    def _retry_passages(self, named: set[str] | None, holds: Holds | None) -> int:
        """Retries failed passages; returns the number of documents affected."""

        def documents_of(id: str) -> list[str]:
            uris = self._store.documents_to_extract(id)
            found = [uri for uri in uris if named is None or uri in named]
            return found if holds is None else [uri for uri in found if self._in_sight(uri, holds)]

        retried = self._extraction_queue.retry(lambda id, _due: bool(documents_of(id)))
        uris = {uri for id in retried for uri in self._store.documents_to_extract(id)}
        return len(uris if holds is None else {uri for uri in uris if self._in_sight(uri, holds)})

    async def retry_failed(self, accepts: Callable[[Document], bool]) -> int:
        """Retries the failed documents for which `accepts` is true; returns their number."""
        return await self.parse_again(lambda document: document.state is State.FAILED and accepts(document))

    async def parse_again(self, accepts: Callable[[Document], bool]) -> int:
        """Parses documents again for which `accepts` is true and whose content is available; returns their number. Call on the
        event loop; `accepts` is also called in a thread.

        Skips a document with newer work: this work parses the document again, or replaces it.
        """
        seen: set[str] = set()
        requeued = 0
        for found in await asyncio.to_thread(lambda: [each for each in self._store.documents() if accepts(each)]):
            document = self._store.document(found.uri)
            key = container_uri(found.uri)
            if key in seen or document is None or (document is not found and not accepts(document)):
                continue
            if document.uri.startswith("file:"):
                seen.add(key)
                position = self._store.positions.get(key)
                inode = Fingerprint.from_json(position).inode if position else -1
                task = RetryFile(key, path_of(key), document.source, inode)
                requeued += self._pipeline.resubmit(key, task, document.attempts)
            elif document.source != ADDED:
                requeued += document.payload is not None and self._pipeline.retry(document)
            elif document.payload is not None:
                seen.add(key)
                added = AddedDocument(key, document.payload, whole=is_imported(key, document.payload))
                requeued += self._pipeline.resubmit(key, added, document.attempts)
        return requeued


def _sort_documents(documents: Sequence[dict[str, Any]], labels: frozenset[str] | None = None) -> _SortedDocuments:
    """Validates documents, and separates additions from removals. `labels`: labels of a restricted client, else None.

    Run it in a thread: 100,000 documents take almost a second.
    """
    sorted_documents = _SortedDocuments()
    last: dict[str, dict[str, Any]] = {}
    deletions: list[str] = []
    for i, document in enumerate(documents):
        problem, uri = check_document(document)
        if labels is not None and problem is None:
            problem, own_labels = document_labels(document, labels)
            document = {**document, "labels": own_labels}
            uri = labelled_uri(uri, own_labels)
        if problem is not None:
            sorted_documents.wrong += 1
            if sorted_documents.wrong <= FIELD_ERRORS_MAX:
                sorted_documents.errors.append(FieldError(field=f"documents[{i}].{problem[0]}", message=problem[1]))
            continue
        (deletions if _deletes(document) else sorted_documents.uris).append(uri)
        last[uri] = document
    if sorted_documents.wrong:
        return sorted_documents
    sorted_documents.uris += deletions
    for uri, document in last.items():
        if _deletes(document):
            sorted_documents.gone.append(uri)
        else:
            sorted_documents.added.append(AddedDocument(uri, json.dumps(document)))
    return sorted_documents


def committed_since(document: Document, since: datetime | None) -> bool:
    """Returns whether the document was committed at or after `since`.

    Compares whole microseconds, as displayed, although the stored time is more precise.
    """
    if since is None:
        return True
    committed_at = utc_time(document.committed_at)
    return committed_at is not None and committed_at >= since


def _deletes(document: dict[str, Any]) -> bool:
    return document.get("deleted") is True
