"""Deep answers: HGMem's steps over one commit, going on from a session's points where one is named."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any

from daemon.api.errors import Conflict, Invalid, Upstream
from daemon.contract import Answerer, AskRequest, AskResponse, AskSession, StepEvent, Tokens
from daemon.services.budgets import budget_of, steps_of
from daemon.services.citing import by_rank, citation
from daemon.services.queries import QueryService
from daemon.services.sessions import SessionService
from daemon.services.telling import Ended, telling
from memory.llm.client import ModelClient
from memory.llm.errors import BadAnswer, ModelError
from memory.working.deep import ask_deep
from memory.working.saved import event_to_json, memory_from_json, memory_to_json, trace_to_json
from memory.working.types import DeepAnswer, DeepSettings, Event, Memory, Writing
from store.pinned import Pinned
from store.sessions import Session
from store.store import Store


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question under way, on one commit. `session` is what it goes on from, None where it begins anew."""

    request: AskRequest
    pinned: Pinned
    earlier: Memory | None = None
    session: Session | None = None


class DeepAnswers:
    def __init__(self, store: Store, queries: QueryService, client: ModelClient, sessions: SessionService) -> None:
        self._store = store
        self._queries = queries
        self._client = client
        self._sessions = sessions
        self._busy: set[str] = set()
        """Sessions with a question under way: the second would not know what the first found, and the later one's points
        would replace the other's."""

    async def stream(self, request: AskRequest) -> AsyncGenerator[str | StepEvent | AskResponse, None]:
        """Steps as they happen, the answer's text as it grows, and the answer."""
        name = self._sessions.name(request.session) if request.session is not None else None
        if name in self._busy:
            raise Conflict(f'The session "{name}" is at another question; ask again when that is answered.')
        with self._held(name):
            async with aclosing(self._stream(request, name)) as parts:
                async for part in parts:
                    yield part

    @contextmanager
    def _held(self, name: str | None) -> Iterator[None]:
        if name is None:
            yield
            return
        self._busy.add(name)
        try:
            yield
        finally:
            self._busy.discard(name)

    async def _stream(
        self, request: AskRequest, name: str | None
    ) -> AsyncGenerator[str | StepEvent | AskResponse, None]:
        began = time.perf_counter()
        session = await asyncio.to_thread(self._sessions.load, name) if name is not None else None
        asked = _Asked(
            request,
            await self._queries.in_thread(self._store.pinned),
            memory_from_json(session.memory) if session is not None else None,
            session,
        )

        def work(tell: Callable[[Event], None]) -> Coroutine[Any, Any, DeepAnswer]:
            return self._ask(asked, tell)

        answer: DeepAnswer | None = None
        async with aclosing(telling(work)) as parts:
            async for part in parts:
                if isinstance(part, Ended):
                    answer = part.value
                elif isinstance(part, Writing):
                    yield part.text
                else:
                    yield StepEvent.model_validate(event_to_json(part))
        assert answer is not None
        unkept = await self._keep(name, answer, session) if name is not None else None
        seconds = time.perf_counter() - began
        yield await self._queries.in_thread(lambda: _response(asked, answer, name, seconds, unkept))

    async def _keep(self, name: str, answer: DeepAnswer, before: Session | None) -> str | None:
        """Why the session could not be kept, where it could not: the answer is there all the same."""
        memory = memory_to_json(answer.trace.memory)
        said = answer.short or answer.text
        trace = answer.trace
        try:
            await asyncio.to_thread(self._sessions.save, name, memory, trace.commit, trace.question, said, before)
        except OSError as error:
            return f"session {name} could not be kept ({error.strerror or error}) and is as it was before this question"
        return None

    async def _ask(self, asked: _Asked, tell: Callable[[Event], None]) -> DeepAnswer:
        request = asked.request
        settings = DeepSettings(
            steps=steps_of(request),
            only=None if request.only is None else request.only.value,
            update=request.update,
            merge=request.merge,
            budget=budget_of(request),
            passages=request.k,
        )
        try:
            return await ask_deep(
                request.question,
                asked.pinned.snapshot,
                self._queries.encoder,
                self._client,
                settings,
                asked.earlier,
                tell,
                self._queries.in_thread,
            )
        except BadAnswer as error:
            raise Upstream(f"{error}; ask again, or use a model that answers in JSON") from None
        except ModelError as error:
            raise Upstream(str(error)) from None
        except ValueError as error:
            raise Invalid(f"The question cannot be worked on so: {error}.") from None


def _response(asked: _Asked, answer: DeepAnswer, name: str | None, seconds: float, unkept: str | None) -> AskResponse:
    pinned, request = asked.pinned, asked.request
    trace = trace_to_json(answer.trace)
    continued = _continued(asked, answer, name)
    notes = [_lost(continued, asked.session.dropped if asked.session else 0), answer.note, unkept]
    return AskResponse(
        question=request.question,
        answer=answer.text,
        citations=by_rank(citation(pinned, c.rank, c.id, c.title, c.text, c.points) for c in answer.citations),
        steps=trace["steps"],
        tokens=Tokens(prompt=answer.tokens.prompt, completion=answer.tokens.completion),
        took_ms=round(seconds * 1000, 3),
        found=answer.found,
        short=answer.short,
        note="; ".join(note for note in notes if note) or None,
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


def _continued(asked: _Asked, answer: DeepAnswer, name: str | None) -> AskSession | None:
    """What the session brought, and what of it this commit no longer vouches for."""
    if name is None:
        return None
    before, dropped = asked.earlier or Memory(), asked.session.dropped if asked.session else 0
    held = {point.id: set(point.passages) for point in answer.trace.earlier.points}
    weakened = sum(bool(set(point.passages) - held[point.id]) for point in before.points if point.id in held)
    return AskSession(
        name=name,
        commit=asked.session.commit if asked.session else None,
        questions=len(asked.session.questions) if asked.session else 0,
        points=len(before.points) + dropped,
        forgotten=len(before.points) - len(held) + dropped,
        weakened=weakened,
    )


def _lost(session: AskSession | None, dropped: int) -> str | None:
    """What the answer's own note does not say of the session's points."""
    if session is None or not (dropped or session.weakened):
        return None
    said = []
    if dropped:
        said.append(f"{dropped} were dropped when the last passage that vouched for them went")
    if session.weakened:
        said.append(f"{session.weakened} lost some of their passages")
    return f"of {session.points} points that session {session.name} had at commit {session.commit}, " + " and ".join(
        said
    )
