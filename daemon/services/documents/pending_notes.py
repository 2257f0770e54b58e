"""Notes in answers about missing documents: documents being indexed, and sources that are not completely scanned."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from daemon.contract.scope import Scope
from daemon.pipeline.extraction.queue import ExtractionQueue
from daemon.pipeline.pipeline import Pipeline
from daemon.services.scopes import ScopeService
from daemon.sources.base import Source
from store.store import Store
from store.types import Document

NOTE_KEPT_S = 2.0
"""Seconds for which the note of a scope is reused: with many pending documents, computing it takes a tenth of a second."""
NOTES_KEPT = 64

PendingNote = Callable[[Scope | None], Awaitable[str | None]]
"""The type of `PendingNotes.note`."""


async def no_pending_note(_scope: Scope | None) -> str | None:
    return None


class PendingNotes:
    """Computes the notes. Use on the event loop only. The note for the whole memory uses counters, because all queries need
    this note."""

    def __init__(
        self,
        store: Store,
        pipeline: Pipeline,
        extraction_queue: ExtractionQueue,
        sources: Sequence[Source],
        scopes: ScopeService,
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._extraction_queue = extraction_queue
        self._sources = sources
        self._scopes = scopes
        self._notes: dict[str, tuple[float, str | None]] = {}

    async def note(self, scope: Scope | None = None) -> str | None:
        """Returns a note about content of `scope` that an answer misses now; None if nothing is missing."""
        if scope is None:
            return self._written(
                self._pipeline.intake.documents(),
                len(self._extraction_queue),
                [source.name for source in self._sources],
            )
        key, now = scope.model_dump_json(), time.monotonic()
        known = self._notes.get(key)
        if known is None or now - known[0] > NOTE_KEPT_S:
            if len(self._notes) >= NOTES_KEPT:
                self._notes.clear()
            known = self._notes[key] = (now, await self._of_scope(scope))
        return known[1]

    async def _of_scope(self, scope: Scope) -> str | None:
        under_way, waiting = self._pipeline.intake.sources(), list(self._extraction_queue.unfinished())
        if under_way or waiting:
            documents, passages = await asyncio.to_thread(self._counts, scope, under_way, waiting)
        else:
            documents = passages = 0
        whole = self._scopes.sources(scope)
        return self._written(documents, passages, [source.name for source in self._sources if whole(source.name)])

    def _counts(self, scope: Scope, under_way: dict[str, str], waiting: list[str]) -> tuple[int, int]:
        """Returns (number of the scope's documents that are being indexed, number of its passages that await the model)."""
        holds, document = self._scopes.holds(scope), self._store.document
        documents = sum(holds(document(uri) or Document(uri, source)) for uri, source in under_way.items())
        holders = ((document(uri) for uri in self._store.documents_to_extract(id)) for id in waiting)
        passages = sum(any(each is not None and holds(each) for each in found) for found in holders)
        return documents, passages

    def _written(self, documents: int, passages: int, sources: Sequence[str]) -> str | None:
        parts = []
        if documents:
            parts.append(f"{documents:,} {'document is' if documents == 1 else 'documents are'} still being indexed")
        if passages:
            parts.append(f"{passages:,} {'passage waits' if passages == 1 else 'passages wait'} for the model")
        parts += [
            note for source in self._sources if source.name in sources and (note := source.pending_note()) is not None
        ]
        return "; ".join(parts) or None


def joined(*notes: str | None) -> str | None:
    """Joins the notes; None if there are none."""
    return "; ".join(note for note in notes if note) or None
