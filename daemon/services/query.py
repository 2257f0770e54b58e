"""`query`: answers from one snapshot in a separate thread, without waiting for indexing."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from daemon.contract.answering.ask import AskRequest
from daemon.contract.graph import GraphRequest
from daemon.contract.query import (
    Explanation,
    QueryCost,
    QueryRequest,
    QueryResponse,
    RankedPassage,
    ScoredTriple,
    SeedPhrase,
    Tokens,
)
from daemon.contract.scope import Scope
from daemon.errors import Conflict, NotConfigured, UpstreamFailed
from daemon.observe.metrics import observe_query
from daemon.pipeline.uninterrupted import run_to_end
from daemon.services.documents.document_references import other_documents, passage_source
from daemon.services.documents.pending_notes import PendingNote, joined, no_pending_note
from daemon.services.explanation import explanation
from daemon.services.query_shares import QueryShares
from daemon.services.scopes import ScopeService
from memory.answering.iterative import RetrievalResult
from memory.encoder import EncoderUnavailable
from memory.retrieval.linking.query_model_calls import ModelEntities, ModelFilter, QueryEntities, QueryFilter
from memory.retrieval.retrieve import is_weak, retrieve
from memory.retrieval.settings import RetrievalSettings
from memory.types import Encoder, Hit, Retrieved
from store.errors import StoreError
from store.snapshot import DocumentLookup, DocumentSnapshot, Snapshot
from store.store import Store
from store.types import Pause, no_pause

MODEL_FILTER_THREADS = 64
"""Maximum queries that wait concurrently for the model's filter."""

RETRIES_AFTER_REMOVAL = 3
"""Number of times that a query is repeated because a concurrent commit removed a passage that the query found."""


AnyRequest = TypeVar("AnyRequest", QueryRequest, GraphRequest)
ResolvedRequest = QueryRequest | GraphRequest | AskRequest
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class EncoderInUse:
    """An encoder, and the first commit with its vectors. Matches of the encoder with a cosine below `weak_below` are weak."""

    since: int
    encoder: Encoder
    weak_below: float | None


@dataclass(frozen=True, slots=True)
class ResolvedQuery:
    """The snapshot, encoder and settings for one request. `began` is a value of `perf_counter`."""

    began: float
    snapshot: Snapshot
    documents: DocumentLookup
    in_use: EncoderInUse
    mode: str
    settings: RetrievalSettings
    recognition: QueryFilter | None
    entities: QueryEntities | None
    pause: Pause

    @property
    def encoder(self) -> Encoder:
        return self.in_use.encoder

    @property
    def model_calls(self) -> list[QueryFilter | QueryEntities]:
        """The parts that may call the model: recognition memory and the entity reader, if the query uses them."""
        return [each for each in (self.entities, self.recognition) if each is not None]

    def noted(self, note: str | None) -> str | None:
        """Joins `note` with the notes of the model calls."""
        for call in self.model_calls:
            note = joined(call.note, note)
        return note

    def retrieve(self, query: str, k: int, explained: bool = False) -> Retrieved:
        """Returns the `k` best passages, with the notes of the model calls."""
        found = retrieve(
            self.snapshot,
            self.encoder,
            query,
            self.mode,
            k,
            self.settings,
            self.recognition,
            explained=explained,
            entity_reader=self.entities,
            documents=self.documents,
            pause=self.pause,
        )
        return replace(found, note=self.noted(found.note))


class QueryService:
    """Serves `POST /v1/query`, and the retrievals of other services.

    `settings`, `mode` and `filtering` (returns the filter's name and its time limit in seconds) are called for each query,
    because the configuration can change while the daemon runs.
    """

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        settings: Callable[[], RetrievalSettings],
        mode: Callable[[], str],
        filter_: ModelFilter | None = None,
        filtering: Callable[[], tuple[str, float]] = lambda: ("none", 0.0),
        threads: int = 2,
        scopes: ScopeService | None = None,
        pending_note: PendingNote = no_pending_note,
        entities: ModelEntities | None = None,
        weak_below: float | None = None,
    ) -> None:
        """`pending_note` is called on the event loop.

        `weak_below` is the cosine below which the encoder's matches are weak.
        """
        self._store = store
        self._encoders: tuple[EncoderInUse, ...] = (EncoderInUse(0, encoder, weak_below),)  # latest encoder first
        self._settings = settings
        self._mode = mode
        self._filter = filter_
        self._entities = entities
        self._filtering = filtering
        self._pending_note = pending_note
        self._scopes = scopes or ScopeService(store, tuple)

        # A query that waits for the model keeps its thread but releases its share of the processors.
        waiting = 0 if filter_ is None else MODEL_FILTER_THREADS
        self._threads = ThreadPoolExecutor(waiting or threads, thread_name_prefix="query")
        self._shares = QueryShares(threads)
        # Queries of earlier commits have a separate share, and pause while other queries run.
        self._past_threads = ThreadPoolExecutor(waiting or 1, thread_name_prefix="as-of")
        self._past_share = QueryShares(1)

    def queried_recently(self) -> bool:
        """Returns whether a query is running, or has just ended."""
        return self._shares.held_recently()

    async def query(self, request: QueryRequest) -> QueryResponse:
        """Answers from one snapshot. Raises NotConfigured if the configuration lacks the mode or filter."""
        note = await self._pending_note(request.scope) if request.as_of is None else None
        answer = await self.run(request, self._answer)
        return answer.model_copy(update={"note": joined(answer.note, note)}) if note else answer

    async def run(self, request: AnyRequest, work: Callable[[AnyRequest, "ResolvedQuery"], Answer]) -> Answer:
        """Runs `work` in a query thread, with the snapshot and settings of `request`."""
        self._require_filter(request)
        return await self.in_thread(partial(self._resolve_and_run, request, work), request.as_of)

    def _require_filter(self, request: ResolvedRequest) -> None:
        if request.filter == "llm" and self._filter is None:
            raise NotConfigured("the filter needs a model; set [llm] base_url and model")

    def _resolve_and_run(self, request: AnyRequest, work: Callable[[AnyRequest, "ResolvedQuery"], Answer]) -> Answer:
        past = None if request.as_of is None else self._past(request.scope, request.as_of)
        began = time.perf_counter()
        snapshot, documents = self._memory(request.scope) if past is None else (past.snapshot, past)
        return work(request, self._resolved(request, began, snapshot, documents))

    def _resolved(
        self,
        request: ResolvedRequest,
        began: float,
        snapshot: Snapshot,
        documents: DocumentLookup,
        filtered: bool = True,
    ) -> "ResolvedQuery":
        """Completes the request by the configured mode and settings. Unless `filtered`, calls no model."""
        mode, settings = self._mode_and_settings(request)
        recognition = self._recognition(request) if filtered else None
        entities = self._entity_reader(request) if filtered else None
        in_use = self.encoder_of(snapshot)
        pause = no_pause if request.as_of is None else self._shares.make_pause()
        return ResolvedQuery(began, snapshot, documents, in_use, mode, settings, recognition, entities, pause)

    def _answer(self, request: QueryRequest, resolved: "ResolvedQuery") -> QueryResponse:
        answer = self._once(request, resolved)
        for _ in range(RETRIES_AFTER_REMOVAL):
            # If a concurrent commit removed the last document of a passage, the present memory has other passages.
            if all(passage.document for passage in answer.passages) or request.as_of is not None:
                break
            snapshot, documents = self._memory(request.scope)
            in_use = self.encoder_of(snapshot)
            answer = self._once(request, replace(resolved, snapshot=snapshot, documents=documents, in_use=in_use))
        return answer

    def _once(self, request: QueryRequest, resolved: "ResolvedQuery") -> QueryResponse:
        found = resolved.retrieve(request.query, request.k, request.explain)
        passages = [_passage(resolved.documents, rank, hit) for rank, hit in enumerate(found.hits, 1)]
        explained = explanation(resolved.documents, resolved.snapshot, found) if request.explain else None
        seconds = time.perf_counter() - resolved.began
        observe_query(resolved.mode, seconds, found.stages_ms)
        weak = is_weak(resolved.in_use.weak_below, found.best_cosine)
        return _response(found, passages, explained, weak, _cost(resolved.model_calls), seconds * 1000)

    def use(self, encoder: Encoder, weak_below: float | None, since: int) -> None:
        """Uses `encoder` for commits from `since` on. Queries of earlier commits keep the encoder of those commits."""
        self._encoders = (EncoderInUse(since, encoder, weak_below), *self._encoders)

    def encoder_of(self, snapshot: Snapshot) -> EncoderInUse:
        """Returns the encoder that made the snapshot's vectors."""
        return next(each for each in self._encoders if each.since <= snapshot.commit)

    @property
    def encoder(self) -> Encoder:
        """The encoder of the present memory."""
        return self._encoders[0].encoder

    async def retrieve(
        self, query: str, request: AskRequest, pinned: DocumentSnapshot, filtered: bool = True
    ) -> RetrievalResult:
        """Returns the passages in `pinned` for `query`. The configuration supplies settings that the request omits.

        Unless `filtered`, calls no model. Raises NotConfigured if the filter needs a model but none is configured.
        """
        self._require_filter(request)
        return await self.in_thread(lambda: self._retrieve(query, request, pinned, filtered), request.as_of)

    def _retrieve(self, query: str, request: AskRequest, pinned: DocumentSnapshot, filtered: bool) -> RetrievalResult:
        resolved = self._resolved(request, time.perf_counter(), pinned.snapshot, pinned, filtered)
        found = resolved.retrieve(query, max(request.k, request.depth or 0))
        observe_query(resolved.mode, time.perf_counter() - resolved.began, found.stages_ms)
        calls = resolved.model_calls
        return RetrievalResult(
            found.hits,
            found.note,
            sum(each.calls for each in calls),
            sum(each.prompt_tokens for each in calls),
            sum(each.completion_tokens for each in calls),
            tuple(each.remembered_tokens for each in calls if each.remembered_tokens is not None),
        )

    async def in_thread(self, work: Callable[[], Answer], as_of: datetime | int | None = None) -> Answer:
        """Runs `work` in a query thread, with a share of the processors."""
        threads = self._threads if as_of is None else self._past_threads
        return await run_to_end(threads, partial(self._shared, self._shares_of(as_of), work))

    def _shares_of(self, as_of: datetime | int | None) -> QueryShares:
        return self._shares if as_of is None else self._past_share

    @staticmethod
    def _shared(shares: QueryShares, work: Callable[[], Answer]) -> Answer:
        with shares:
            try:
                return work()
            except EncoderUnavailable as error:
                raise UpstreamFailed(str(error)) from error

    def _mode_and_settings(self, request: ResolvedRequest) -> tuple[str, RetrievalSettings]:
        """Returns the request's mode and settings; the configuration supplies omitted values."""
        settings = replace(self._settings(), **request.settings.model_dump(exclude_none=True))
        if settings.entities == "llm" and self._entities is None:
            raise NotConfigured('entities = "llm" needs a model; set [llm] base_url and model')
        return str(request.mode or self._mode()), settings

    def _memory(self, scope: Scope | None) -> tuple[Snapshot, DocumentLookup]:
        """Returns the present snapshot and its document look-up; without a scope, the look-up is not copied."""
        if scope is None:
            return self._store.snapshot(), self._store
        present = self._present(scope)
        return present.snapshot, present

    def _present(self, scope: Scope | None) -> DocumentSnapshot:
        with _not_kept_is_conflict():
            return self._store.document_snapshot() if scope is None else self._scopes.memory(scope)

    async def pinned(self, scope: Scope | None, as_of: datetime | int | None) -> DocumentSnapshot:
        """Returns the memory or a scope of it, now or at an earlier moment, for work that may outlast a commit.

        Raises Conflict if the earlier moment is no longer stored.
        """
        work = partial(self._present, scope) if as_of is None else partial(self._past, scope, as_of)
        return await self.in_thread(work, as_of)

    def _past(self, scope: Scope | None, as_of: datetime | int) -> DocumentSnapshot:
        moment = as_of.timestamp() if isinstance(as_of, datetime) else as_of
        pause = self._shares.make_pause()
        with _not_kept_is_conflict():
            if scope is not None:
                return self._scopes.memory(scope, moment, pause)
            return self._store.document_snapshot_at(moment, pause)

    def _recognition(self, request: ResolvedRequest) -> QueryFilter | None:
        """Returns recognition memory for one query; None if it is off. Remembered answers are separate for each scope."""
        chosen, limit_s = self._filtering()
        if self._filter is None or (request.filter or chosen) == "none":
            return None
        within = _within(request.scope)
        shares = self._shares_of(request.as_of)
        return QueryFilter(self._filter, limit_s, shares.release, shares.acquire, within)

    def _entity_reader(self, request: ResolvedRequest) -> QueryEntities | None:
        """Returns the reader of a query's entities; None without a model. Recognition memory's time limit applies."""
        if self._entities is None:
            return None
        limit_s, shares = self._filtering()[1], self._shares_of(request.as_of)
        return QueryEntities(self._entities, limit_s, shares.release, shares.acquire, _within(request.scope))

    async def moves(self) -> None:
        """Returns once a query thread has run, so that the watchdog can check whether queries make progress."""
        await asyncio.get_running_loop().run_in_executor(self._threads, self._turn)

    def _turn(self) -> None:
        with self._shares:
            self._store.snapshot()

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._past_threads.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _not_kept_is_conflict() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        detail = str(error)
        raise Conflict(f"The memory of that time is not available: {detail}.", errors={"as_of": detail}) from None


def _within(scope: Scope | None) -> str:
    """Returns a key for the scope: remembered answers must not leak between scopes."""
    return "" if scope is None else scope.model_dump_json()


def _passage(documents: DocumentLookup, rank: int, hit: Hit) -> RankedPassage:
    source = passage_source(documents, hit.id, hit.title)
    passages = source.document.passages if source.document else ()
    location = next((dict(ref.location) for ref in passages if ref.passage == hit.id), {})
    return RankedPassage(
        rank=rank,
        score=hit.score,
        cosine=None if hit.cosine is None else round(hit.cosine, 6),
        id=hit.id,
        title=source.title,
        text=hit.text,
        document=source.uri,
        location=location,
        also_in=other_documents(documents, source, hit.versions),
        conflicting_values=list(hit.conflicting_values),
    )


def _cost(calls: Sequence[QueryFilter | QueryEntities]) -> QueryCost | None:
    """Returns the cost of the model calls, including remembered calls; None without model calls."""
    made = [each for each in calls if each.calls or each.remembered_tokens]
    if not made:
        return None
    spent = [each.remembered_tokens or (each.prompt_tokens, each.completion_tokens) for each in made]
    tokens = Tokens(prompt=sum(prompt for prompt, _ in spent), completion=sum(completion for _, completion in spent))
    remembered = all(each.remembered_tokens is not None for each in made)
    return QueryCost(calls=len(made), tokens=tokens, remembered=remembered)


def _response(
    found: Retrieved,
    passages: list[RankedPassage],
    explained: Explanation | None,
    weak: bool | None,
    cost: QueryCost | None,
    took_ms: float,
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
        stages_ms={name: round(seconds, 3) for name, seconds in found.stages_ms.items()},
        explain=explained,
        weak=weak,
        cost=cost,
        note=found.note,
    )
