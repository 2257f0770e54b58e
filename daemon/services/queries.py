"""`query`: one snapshot, in a thread of its own, never behind indexing."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from daemon.api.errors import Conflict, NotConfigured, Upstream
from daemon.contract import (
    Explanation,
    FieldError,
    GraphRequest,
    QueryRequest,
    QueryResponse,
    RankedPassage,
    ScoredTriple,
    SeedPhrase,
)
from daemon.metrics import observe_query
from daemon.services.explaining import explanation
from memory.encoder import EncoderUnavailable
from memory.iterative import Retrieval
from memory.recognition import Attempt, ModelFilter
from memory.retrieval import RetrievalSettings, retrieve
from memory.types import Encoder, Hit, Retrieved
from store.errors import StoreError
from store.pinned import Naming
from store.snapshot import Snapshot
from store.store import Store

MOST_WAITING = 64
"""Queries that may wait for the model's filter at once."""

AGAIN = 3
"""How often a query is made once more because a commit meanwhile removed what it had found."""


Asking = TypeVar("Asking", QueryRequest, GraphRequest)
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Terms:
    """What one request is answered with. `began` is on the clock of `perf_counter`."""

    began: float
    snapshot: Snapshot
    naming: Naming
    encoder: Encoder
    mode: str
    settings: RetrievalSettings
    attempt: Attempt | None

    def noted(self, note: str | None) -> str | None:
        """`note`, and what recognition memory has to say."""
        return "; ".join(each for each in (self.attempt and self.attempt.note, note) if each) or None


class QueryService:
    """The `Queries` port. `settings`, `mode` and `filtering` (which filter, and its time limit in seconds) are asked at
    each query: they can change while the daemon runs."""

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        settings: Callable[[], RetrievalSettings],
        mode: Callable[[], str],
        filter_: ModelFilter | None = None,
        filtering: Callable[[], tuple[str, float]] = lambda: ("none", 0.0),
        threads: int = 2,
    ) -> None:
        self._store = store
        self._encoder = encoder
        self._settings = settings
        self._mode = mode
        self._filter = filter_
        self._filtering = filtering
        # A query that waits for the model holds a thread, and lends its share of the processor.
        self._threads = ThreadPoolExecutor(threads if filter_ is None else MOST_WAITING, thread_name_prefix="query")
        self._shares = threading.Semaphore(threads)

    async def query(self, request: QueryRequest) -> QueryResponse:
        return await self.run(request, self._answer)

    async def run(self, request: Asking, work: Callable[[Asking, "Terms"], Answer]) -> Answer:
        """`work` in a thread of the queries, on the snapshot and the terms that `request` names."""
        if request.filter == "llm" and self._filter is None:
            raise NotConfigured("the filter needs a model; write [llm] base_url and model into the configuration")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._on_terms, request, work)

    def _on_terms(self, request: Asking, work: Callable[[Asking, "Terms"], Answer]) -> Answer:
        began = time.perf_counter()
        mode = str(request.mode or self._mode())
        settings = replace(self._settings(), **request.settings.model_dump(exclude_none=True))
        attempt = self._attempt(request)
        with self._shares:
            try:
                return work(request, Terms(began, *self._memory(request.as_of), self._encoder, mode, settings, attempt))
            except EncoderUnavailable as error:
                raise Upstream(str(error)) from error

    def _answer(self, request: QueryRequest, terms: "Terms") -> QueryResponse:
        answer = self._once(request, terms)
        for _ in range(AGAIN):
            # Only of the present: a commit meanwhile took the last document of a passage away. The next memory has others.
            if all(passage.document for passage in answer.passages) or request.as_of is not None:
                break
            snapshot, naming = self._memory(None)
            answer = self._once(request, replace(terms, snapshot=snapshot, naming=naming))
        return answer

    def _once(self, request: QueryRequest, terms: "Terms") -> QueryResponse:
        found = retrieve(
            terms.snapshot,
            terms.encoder,
            request.query,
            terms.mode,
            request.k,
            terms.settings,
            terms.attempt,
            explained=request.explain,
        )
        found = replace(found, note=terms.noted(found.note))
        passages = [_passage(terms.naming, rank, hit) for rank, hit in enumerate(found.hits, 1)]
        explained = explanation(terms.naming, terms.snapshot, found) if request.explain else None
        took = time.perf_counter() - terms.began
        observe_query(terms.mode, took, found.stages_ms)
        return _response(found, passages, explained, took * 1000)

    @property
    def encoder(self) -> Encoder:
        return self._encoder

    async def look(self, query: str, k: int, snapshot: Snapshot, filtered: bool = True) -> Retrieval:
        """The passages for `query` within `snapshot`, as configured; `filtered` false leaves recognition memory out."""
        return await self.in_thread(lambda: self._look(query, k, snapshot, filtered))

    def _look(self, query: str, k: int, snapshot: Snapshot, filtered: bool) -> Retrieval:
        began, mode = time.perf_counter(), self._mode()
        attempt = self._attempt(QueryRequest(query=query)) if filtered else None
        found = retrieve(snapshot, self._encoder, query, mode, k, self._settings(), attempt)
        observe_query(mode, time.perf_counter() - began, found.stages_ms)
        if attempt is None:
            return Retrieval(found.hits, found.note)
        note = "; ".join(each for each in (attempt.note, found.note) if each) or None
        return Retrieval(found.hits, note, attempt.calls, attempt.prompt_tokens, attempt.completion_tokens)

    async def in_thread(self, work: Callable[[], Answer]) -> Answer:
        """`work` in a thread of the queries, within their share of the processor."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._shared, work)

    def _shared(self, work: Callable[[], Answer]) -> Answer:
        with self._shares:
            try:
                return work()
            except EncoderUnavailable as error:
                raise Upstream(str(error)) from error

    def _memory(self, as_of: datetime | int | None) -> tuple[Snapshot, Naming]:
        """The present memory, or that of an earlier moment, for which a part of the store is read again."""
        if as_of is None:
            return self._store.snapshot(), self._store
        try:
            then = self._store.pinned_at(as_of if isinstance(as_of, int) else as_of.timestamp())
            return then.snapshot, then
        except StoreError as error:
            detail = str(error)
        raise Conflict(
            f"There is no memory of that time: {detail}.", errors=[FieldError(field="as_of", message=detail)]
        )

    def _attempt(self, request: "QueryRequest | GraphRequest") -> Attempt | None:
        """Recognition memory for one query, where it is configured or asked for."""
        chosen, limit_s = self._filtering()
        if self._filter is None or (request.filter or chosen) == "none":
            return None
        return Attempt(self._filter, limit_s, self._shares.release, self._shares.acquire)

    async def moves(self) -> None:
        """Returns once a thread of the queries has had its turn: what the watchdog asks."""
        await asyncio.get_running_loop().run_in_executor(self._threads, self._turn)

    def _turn(self) -> None:
        with self._shares:
            self._store.snapshot()

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _passage(naming: Naming, rank: int, hit: Hit) -> RankedPassage:
    uris = naming.users(hit.id)
    document = naming.document(uris[0]) if uris else None
    location = next((dict(ref.location) for ref in document.passages if ref.passage == hit.id), {}) if document else {}
    return RankedPassage(
        rank=rank,
        score=hit.score,
        id=hit.id,
        title=hit.title or (document.title if document else ""),
        text=hit.text,
        document=uris[0] if uris else "",
        location=location,
        also_in=uris[1:],
    )


def _response(
    found: Retrieved, passages: list[RankedPassage], explained: Explanation | None, took_ms: float
) -> QueryResponse:
    return QueryResponse(
        query=found.query,
        mode=found.mode,
        commit=found.commit,
        took_ms=round(took_ms, 3),
        passages=passages,
        triples=[
            ScoredTriple(subject=t.subject, predicate=t.predicate, object=t.object, score=t.score, kept=t.kept)
            for t in found.triples
        ],
        seeds=[SeedPhrase(phrase=seed.phrase, weight=seed.weight) for seed in found.seeds],
        explain=explained,
        note=found.note,
    )
