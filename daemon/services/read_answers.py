"""Answers that the model reads from retrieved passages: of one retrieval, or of several with thoughts between them."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any

from daemon.api.errors import TimedOut, Upstream
from daemon.contract import Answerer, AskRequest, AskResponse, StepEvent, Tokens
from daemon.services.budgets import budget_of, steps_of, why_ended
from daemon.services.citing import by_rank, citation
from daemon.services.queries import QueryService
from daemon.services.telling import Ended, telling
from memory import reading
from memory.iterative import Iterated, Meter, Retrieval, Step, fitting, iterate, named, taken, unread
from memory.llm.client import ModelClient, Reply
from memory.llm.errors import BadAnswer, ModelDown, ModelError
from memory.types import Hit
from memory.working.answering import UNWRITTEN
from store.pinned import Pinned
from store.store import Store

TITLES = 5
"""Titles of new passages that a step is told with."""
ADVICE = "ask again, or use a model that answers in JSON"


@dataclass(frozen=True, slots=True)
class Read:
    """An answer over `passages`, numbered from 1. `written` is false where it is made of thoughts."""

    answer: reading.Answer
    passages: tuple[Hit, ...]
    note: str | None = None
    written: bool = True


class ReadAnswers:
    """On one commit a question: what is retrieved, and which documents hold it."""

    def __init__(self, store: Store, queries: QueryService, client: ModelClient) -> None:
        self._store = store
        self._queries = queries
        self._client = client

    async def stream(self, request: AskRequest) -> AsyncGenerator[str | StepEvent | AskResponse, None]:
        """Steps as they are made (none without `steps`), the answer's text as it grows, and the answer."""
        began = time.perf_counter()
        pinned = await self._queries.in_thread(self._store.pinned)
        budget = budget_of(request)
        meter = Meter(budget)
        several = request.steps is not None

        async def look(query: str) -> Retrieval:
            try:
                filtered = meter.calls + 2 <= budget.calls and meter.room()
                return await self._queries.look(query, request.k, pinned.snapshot, filtered)
            except Upstream as error:  # the encoder's server
                raise ModelDown(error.detail) from None

        def steps(tell: Callable[[Step], None]) -> Coroutine[Any, Any, Iterated]:
            return iterate(request.question, look, self._client, steps_of(request), request.k, meter, tell)

        iterated: Iterated | None = None
        try:
            async with aclosing(telling(steps)) as parts:
                async for told in parts:
                    if isinstance(told, Ended):
                        iterated = told.value
                    elif several:
                        yield _event(told)
        except ModelError as error:
            raise Upstream(str(error)) from None
        assert iterated is not None
        if several:
            yield _told("answering", stopped=iterated.stopped)
        ended = why_ended(iterated.stopped, budget, len(iterated.steps), iterated.error)

        def reads(tell: Callable[[str], None]) -> Coroutine[Any, Any, Read]:
            found = iterated.passages
            shown = fitting(request.question, found, meter) if several else found
            return self._read(request.question, iterated, shown, meter, tell)

        read: Read | None = None
        async with aclosing(telling(reads)) as texts:
            async for text in texts:
                if isinstance(text, Ended):
                    read = text.value
                else:
                    yield text
        assert read is not None
        notes = [*dict.fromkeys(step.note for step in iterated.steps), ended, read.note]
        yield _response(request, pinned, iterated, read, meter, (time.perf_counter() - began) * 1000, notes)

    async def _read(
        self,
        question: str,
        iterated: Iterated,
        passages: Sequence[Hit],
        meter: Meter,
        tell: Callable[[str], None],
    ) -> Read:
        """The answer from `passages`, whose text is told as it grows; where the model fails, what the thoughts say."""
        messages = reading.messages(question, [(hit.title, hit.text) for hit in passages])
        allowed = f"no more than {meter.budget.tokens:,} tokens were allowed"
        if len(passages) < len(iterated.passages) and not passages:
            return _unwritten(iterated, f"the answer could not be written: {allowed}")
        reply, shown = Reply(""), ""
        failure: Upstream | TimedOut
        try:
            async with (
                asyncio.timeout(meter.left_s),
                aclosing(self._client.stream("answer", messages, reading.SHAPE)) as replies,
            ):
                async for reply in replies:
                    text = reading.so_far(reply.text, len(passages))
                    if len(text) > len(shown):
                        shown = text
                        tell(shown)
            answer = reading.read_answer(reply.text, len(passages), reply.cut)
            meter.spend(1, *taken(messages, reply))
            left_out = len(iterated.passages) - len(passages)
            note = f"{left_out} of {len(iterated.passages)} passages were left out of the answer: {allowed}"
            return Read(answer, tuple(passages), note if left_out else None)
        except BadAnswer as error:
            self._client.told("answer", error.kind)
            failure = Upstream(f"{error}; {ADVICE}")
        except ModelError as error:
            failure = Upstream(str(error))
        except TimeoutError:
            self._client.told("answer", "timeout")
            failure = TimedOut(f"the answer was not written within the {meter.budget.seconds:g} s allowed")
        meter.spend(1, *(taken(messages, reply) if reply.text else (0, 0)))
        if not iterated.thoughts:
            raise failure
        return _unwritten(iterated, f"the answer is made of the thoughts on the way to it: {failure.detail}")


def _unwritten(iterated: Iterated, note: str) -> Read:
    """What can be said without the model: the thoughts, else which passages were found."""
    text, cited = unread(iterated)
    if not text:
        cited = iterated.passages
        text = f"{UNWRITTEN} Found: {named(cited)}."
    found = iterated.stopped == "answered"
    return Read(reading.Answer(text, tuple(range(1, len(cited) + 1)), "", found), cited, note, written=False)


def _event(step: Step) -> StepEvent:
    if step.thought is not None:
        return _told("thought", step=step.number, thought=asdict(step.thought))
    new = set(step.new)
    titles = [hit.title or hit.text[:60] for hit in step.found if hit.id in new][:TITLES]
    return _told("retrieved", step=step.number, query=step.query, passages=len(step.found), new=len(new), titles=titles)


def _told(kind: str, **more: Any) -> StepEvent:
    return StepEvent.model_validate({"kind": kind, **more})


def _passage(hit: Hit, *, text: bool) -> dict[str, Any]:
    whole = {"id": hit.id, "title": hit.title, "score": round(hit.score, 6)}
    return whole | {"text": hit.text} if text else whole


def _step(step: Step) -> dict[str, Any]:
    """The step as JSON; a passage's text stands with what found it."""
    return {
        "number": step.number,
        "query": step.query,
        "found": [_passage(hit, text=True) for hit in step.found],
        "new": list(step.new),
        "passages": [_passage(hit, text=False) for hit in step.passages],
        "thought": asdict(step.thought) if step.thought else None,
        "reply": step.reply,
        "error": step.error,
        "note": step.note,
        "calls": step.calls,
        "prompt_tokens": step.prompt_tokens,
        "completion_tokens": step.completion_tokens,
        "seconds": round(step.seconds, 6),
    }


def _response(
    request: AskRequest,
    pinned: Pinned,
    iterated: Iterated,
    read: Read,
    meter: Meter,
    took_ms: float,
    notes: Sequence[str | None],
) -> AskResponse:
    cited = [
        citation(pinned, rank, hit.id, hit.title, hit.text)
        for rank, hit in enumerate(read.passages, 1)
        if rank in read.answer.cited
    ]
    several = request.steps is not None
    return AskResponse(
        question=request.question,
        answer=read.answer.text,
        citations=by_rank(cited),
        steps=[_step(step) for step in iterated.steps] if several else [],
        tokens=Tokens(prompt=meter.prompt_tokens, completion=meter.completion_tokens),
        took_ms=round(took_ms, 3),
        found=read.answer.found,
        short=read.answer.short,
        note="; ".join(note for note in notes if note) or None,
        answerer=Answerer.ITERATIVE if several else Answerer.SINGLE,
        commit=pinned.snapshot.commit,
        calls=meter.calls,
        stopped=iterated.stopped if several else None,
        written=read.written,
    )
