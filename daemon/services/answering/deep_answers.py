"""Deep answers: the steps of HGMem on one commit, beginning with a session's points if the request names a session."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from daemon.contract.answering.ask import AskProgress, AskRequest, AskResponse, AskSession, RetrievedPassage
from daemon.contract.answering.steps import StepEvent
from daemon.contract.choices import Answerer
from daemon.contract.query import Tokens
from daemon.contract.scope import Scope
from daemon.errors import Conflict, UpstreamFailed
from daemon.services.answering.request_budget import answer_form_of, budget_of, steps_of
from daemon.services.answering.sessions import SessionService, session_key
from daemon.services.documents.document_references import citation, retrieved_passage
from daemon.services.documents.pending_notes import joined
from daemon.services.query import QueryService
from memory.answering.working_memory.declared_settings import DEEP_SETTINGS
from memory.answering.working_memory.deep import ask_deep
from memory.answering.working_memory.deep_answer import DeepAnswer
from memory.answering.working_memory.inquiries import FoundPassage
from memory.answering.working_memory.points import WorkingMemory
from memory.answering.working_memory.trace import (
    AnswerGrew,
    DeepEvent,
    DeepSettings,
    event_to_json,
    memory_from_json,
    memory_to_json,
    trace_to_json,
)
from memory.llm.client import ModelClient
from memory.llm.errors import BadAnswer, ModelError
from store.sessions import Session
from store.snapshot import DocumentSnapshot
from store.store import Store


@dataclass(frozen=True, slots=True)
class _Question:
    """A question in progress on one commit. `session` is the session that it continues; None for a new one."""

    request: AskRequest
    pinned: DocumentSnapshot
    earlier: WorkingMemory | None = None
    session: Session | None = None


class DeepAnswers:
    def __init__(
        self,
        store: Store,
        queries: QueryService,
        client: ModelClient,
        sessions: SessionService,
        settings: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """`settings` returns the values of `[deep]`; it is called for each question."""
        self._store = store
        self._queries = queries
        self._client = client
        self._sessions = sessions
        self._settings = settings
        self._busy: set[str] = set()
        """Keys of sessions with a question in progress. Two concurrent questions of a session would not see each other's
        points, and the one that ends last would overwrite the points of the other."""

    async def answer(self, request: AskRequest, report: Callable[[StepEvent | AskProgress], None]) -> AskResponse:
        name = self._sessions.name(request.session) if request.session is not None else None
        key = session_key(name, request.scope) if name is not None else None
        if key in self._busy:
            raise Conflict(f'The session "{name}" is answering another question; ask again after its answer.')
        with self._marked_busy(key):
            return await self._answer(request, name, report)

    @contextmanager
    def _marked_busy(self, key: str | None) -> Iterator[None]:
        if key is None:
            yield
            return
        self._busy.add(key)
        try:
            yield
        finally:
            self._busy.discard(key)

    async def _answer(
        self, request: AskRequest, name: str | None, report: Callable[[StepEvent | AskProgress], None]
    ) -> AskResponse:
        began = time.perf_counter()
        scope, session, earlier = request.scope, None, None
        if name is not None:
            session = await asyncio.to_thread(self._sessions.load, session_key(name, scope), name)
        pinned = await self._queries.pinned(scope, request.as_of)
        if session is not None:
            earlier = self._sessions.in_sight(memory_from_json(session.memory), scope, pinned.snapshot)
        question = _Question(request, pinned, earlier, session)
        answer = await self._ask(question, lambda event: report(_progress(event)))
        unsaved = await self._save_session(name, scope, answer, session) if name is not None else None
        seconds = time.perf_counter() - began
        return await self._queries.in_thread(lambda: _response(question, answer, name, seconds, unsaved))

    async def _save_session(
        self, name: str, scope: Scope | None, answer: DeepAnswer, before: Session | None
    ) -> str | None:
        """Saves the session; returns a note if saving fails, otherwise None. The answer is returned in either case."""
        memory = memory_to_json(answer.trace.memory)
        short_answer = answer.short or answer.text
        trace = answer.trace
        try:
            if not await asyncio.to_thread(
                self._sessions.save, name, scope, memory, trace.commit, trace.question, short_answer, before
            ):
                return f"session {name} was removed while this question was answered, and is not stored"
        except OSError as error:
            return f"session {name} could not be stored ({error.strerror or error}) and is unchanged"
        return None

    async def _ask(self, question: _Question, report: Callable[[DeepEvent], None]) -> DeepAnswer:
        request = question.request
        settings = deep_settings(request, self._settings())
        try:
            return await ask_deep(
                request.question,
                question.pinned.snapshot,
                self._queries.encoder_of(question.pinned.snapshot).encoder,
                self._client,
                settings,
                question.earlier,
                report,
                self._queries.in_thread,
                answer_form_of(request),
            )
        except BadAnswer as error:
            raise UpstreamFailed(f"{error}; ask again, or use a model that answers in JSON") from None
        except ModelError as error:
            raise UpstreamFailed(str(error)) from None


def deep_settings(request: AskRequest, configured: Mapping[str, Any]) -> DeepSettings:
    """Returns the settings of the request. `configured`, the values of `[deep]`, supplies the settings that the request omits.

    `k` of the request, if given, sets n_d.
    """
    declared = {name: setting.default for name, setting in DEEP_SETTINGS.items()}
    values = {**declared, **configured, **({"n_d": request.k} if "k" in request.model_fields_set else {})}
    values |= request.deep_settings.model_dump(exclude_none=True)
    return DeepSettings(
        steps=steps_of(request),
        quick=request.quick,
        each_step=request.each_step,
        forced=request.forced,
        only=None if request.only is None else request.only.value,
        update=request.update,
        merge=request.merge,
        budget=budget_of(request),
        entities=values["n_v"],
        triples=values["n_e"],
        passages=values["n_d"],
        answer_passages=values["answer_passages"],
        temperature=values["model_temperature"],
    )


def _progress(event: DeepEvent) -> StepEvent | AskProgress:
    if isinstance(event, AnswerGrew):
        return AskProgress(text=event.text)
    return StepEvent.model_validate(event_to_json(event))


def _response(
    question: _Question, answer: DeepAnswer, name: str | None, seconds: float, unsaved: str | None
) -> AskResponse:
    pinned, request = question.pinned, question.request
    trace = trace_to_json(answer.trace)
    for step, record in zip(trace["steps"], answer.trace.steps, strict=True):
        if record.answer is not None:
            read = _passages(pinned, record.answer.passages) if request.passages else []
            step["answer"]["passages"] = [each.model_dump(mode="json") for each in read]
    continued = _ask_session(question, answer, name)
    notes = [_lost_points_note(continued, question.session.dropped if question.session else 0), answer.note, unsaved]
    return AskResponse(
        question=request.question,
        answer=answer.text,
        citations=[
            citation(pinned, c.rank, c.id, c.title, c.text, c.points)
            for c in sorted(answer.citations, key=lambda each: each.rank)
        ],
        steps=trace["steps"],
        tokens=Tokens(prompt=answer.tokens.prompt, completion=answer.tokens.completion),
        took_ms=round(seconds * 1000, 3),
        found=answer.found,
        short=answer.short,
        reasoning=answer.reasoning or None,
        passages=_passages(pinned, answer.passages) if request.passages else [],
        note=joined(*notes),
        answerer=Answerer.DEEP,
        commit=answer.trace.commit,
        calls=answer.requests,
        own_ms=round(answer.own_seconds * 1000, 3),
        stopped=answer.stopped,
        written=answer.written,
        session=continued,
        version=trace["version"],
        settings=trace["settings"],
        earlier=trace["earlier"],
        forgotten=trace["forgotten"],
        answered=trace["answered"],
        entities_a_point=round(answer.trace.memory.entities_a_point, 4),
    )


def _passages(pinned: DocumentSnapshot, found: Sequence[FoundPassage]) -> list[RetrievedPassage]:
    return [retrieved_passage(pinned, rank, each) for rank, each in enumerate(found, 1)]


def _ask_session(question: _Question, answer: DeepAnswer, name: str | None) -> AskSession | None:
    """Returns the state of the session before the question, and how many of its points lost their support."""
    if name is None:
        return None
    before, dropped = question.earlier or WorkingMemory(), question.session.dropped if question.session else 0
    supported = {point.id: set(point.passages) for point in answer.trace.earlier.points}
    weakened = sum(bool(set(point.passages) - supported[point.id]) for point in before.points if point.id in supported)
    return AskSession(
        name=name,
        commit=question.session.commit if question.session else None,
        questions=len(question.session.questions) if question.session else 0,
        points=len(before.points) + dropped,
        forgotten=len(before.points) - len(supported) + dropped,
        weakened=weakened,
    )


def _lost_points_note(session: AskSession | None, dropped: int) -> str | None:
    """Returns a note about lost points of the session, unless the answer's own note mentions them."""
    if session is None or not (dropped or session.weakened):
        return None
    losses = []
    if dropped:
        losses.append(f"{dropped} were dropped when the last passage that supported them was removed")
    if session.weakened:
        losses.append(f"{session.weakened} lost some of their passages")
    return f"of {session.points} points that session {session.name} had at commit {session.commit}, " + " and ".join(
        losses
    )
