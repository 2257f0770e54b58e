"""`ask`: answers by the model, from one or several retrievals, with verified citations."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Protocol

from daemon.contract.answering.ask import (
    OF_MEMORY,
    OF_MODE,
    AskProgress,
    AskRequest,
    AskResponse,
    given_fields,
)
from daemon.contract.answering.steps import StepEvent
from daemon.contract.choices import BUDGETS, DEEP_ONLY, NO_RETRIEVAL
from daemon.errors import Invalid
from daemon.services.answering.deep_answers import DeepAnswers
from daemon.services.answering.iterative_answers import ClosedBookAnswers, IterativeAnswers
from daemon.services.answering.sessions import SessionService, requested_scope
from daemon.services.documents.pending_notes import PendingNote, joined, no_pending_note
from daemon.services.query import QueryService
from memory.llm.client import ModelClient
from store.store import Store


class Answerer(Protocol):
    async def answer(self, request: AskRequest, report: Callable[[StepEvent | AskProgress], None]) -> AskResponse:
        """Answers the question. Reports each step when it happens, and the text as it grows. Raises a RequestError."""
        ...


class AskService:
    """Serves `POST /v1/ask`. `ask` and `stream` raise UpstreamFailed if the model fails."""

    def __init__(
        self,
        store: Store,
        queries: QueryService,
        client: ModelClient,
        sessions: SessionService,
        pending_note: PendingNote = no_pending_note,
        deep_settings: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """`pending_note` is called on the event loop."""
        self._pending_note = pending_note
        self._closed_book = ClosedBookAnswers(store, client)
        self._iterative = IterativeAnswers(store, queries, client)
        self._deep = DeepAnswers(store, queries, client, sessions, deep_settings)

    async def ask(self, request: AskRequest) -> AskResponse:
        refuse_ineffective_options(request)
        return await self._answer(request, lambda _progress: None)

    async def _answer(self, request: AskRequest, report: Callable[[StepEvent | AskProgress], None]) -> AskResponse:
        is_present = request.mode != NO_RETRIEVAL and request.as_of is None
        note = await self._pending_note(request.scope) if is_present else None
        answer = await self._answerer(request).answer(request, report)
        return answer.model_copy(update={"note": joined(answer.note, note)}) if note else answer

    async def stream(self, request: AskRequest) -> AsyncGenerator[StepEvent | AskProgress | AskResponse, None]:
        """Yields the events of each step, then the growing text (each item is the whole text so far), and finally the answer.

        Closing the stream cancels the work.
        """
        refuse_ineffective_options(request)
        reports: asyncio.Queue[StepEvent | AskProgress | None] = asyncio.Queue()
        answer = asyncio.create_task(self._answer(request, reports.put_nowait))
        answer.add_done_callback(lambda _: reports.put_nowait(None))
        try:
            while (report := await reports.get()) is not None:
                yield report
            yield answer.result()
        finally:
            answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)

    def _answerer(self, request: AskRequest) -> Answerer:
        if request.mode == NO_RETRIEVAL:
            return self._closed_book
        return self._deep if request.deep else self._iterative


def refuse_ineffective_options(request: AskRequest) -> None:
    """Raises Invalid for an option that would have no effect: no option may be ignored silently.

    Also raises Invalid for a session with `as_of`, because the session's points may come from later documents.
    """
    if request.session is not None and request.as_of is not None:
        raise _invalid(["session"], 'works on the present memory only; leave "as_of" out')
    if request.deep and request.mode != NO_RETRIEVAL and (wrong := given_fields(request, OF_MODE)):
        raise _invalid(wrong, 'has no effect with "deep": true')
    if request.mode == NO_RETRIEVAL and (wrong := _fields_of_memory(request)):
        raise _invalid(wrong, 'has no effect in mode "none", which answers without the memory')
    if not request.deep:
        if wrong := given_fields(request, DEEP_ONLY):
            raise _invalid(wrong, 'has an effect only with "deep": true')
        if request.steps is None and (wrong := given_fields(request, BUDGETS)):
            raise _invalid(wrong, 'has an effect only on questions in several steps: with "deep": true, or "steps"')


def _fields_of_memory(request: AskRequest) -> list[str]:
    """Returns the given fields that have no effect without the memory. `scope` counts only if the client requested it: a
    restricted client's requests always have one."""
    found = given_fields(request, OF_MEMORY)
    return [name for name in found if name != "scope" or requested_scope(request.scope)]


def _invalid(fields: list[str], message: str) -> Invalid:
    return Invalid(f"{fields[0]} {message}.", errors=dict.fromkeys(fields, message))
