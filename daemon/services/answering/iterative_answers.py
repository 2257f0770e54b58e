"""Answers from the passages of one retrieval, or of several: each thought of the model is the next query.

`ClosedBookAnswers` retrieves nothing: a baseline from the model's own knowledge ("None" in HippoRAG 2, Table 2).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from daemon.contract.answering.ask import AskProgress, AskRequest, AskResponse, RetrievedPassage
from daemon.contract.answering.steps import StepEvent, StepRetrieved, StepsEnded, StepThought, Thought
from daemon.contract.choices import Answerer
from daemon.contract.query import QueryCost, Tokens
from daemon.errors import TimedOut, UpstreamFailed
from daemon.services.answering.request_budget import answer_form_of, budget_of, steps_of
from daemon.services.documents.document_references import citation, retrieved_passage
from daemon.services.documents.pending_notes import joined
from daemon.services.query import QueryService
from memory.answering import qa_reader
from memory.answering.answer_form import AnswerForm
from memory.answering.budget import Spending, fit_passages, halved
from memory.answering.iterative import (
    IterativeResult,
    IterativeStep,
    RetrievalResult,
    answer_from_thoughts,
    answer_prompt,
    end_note,
    iterate,
    merge_hits,
    passage_titles,
)
from memory.answering.qa_reader import NO_ANSWER_WRITTEN, reader_prompt, stream_answer
from memory.llm.client import ModelClient
from memory.llm.errors import BadAnswer, ModelDown, ModelError, ModelRefused
from memory.types import Hit
from store.snapshot import DocumentSnapshot
from store.store import Store

NEW_TITLES_MAX = 5
"""Maximum titles of new passages in the event of a step."""
BAD_ANSWER_HINT = "ask again, or use a model that answers in JSON"


@dataclass(frozen=True, slots=True)
class ReaderAnswer:
    """An answer from `passages`, numbered from 1. `written` is False if the answer consists of the model's thoughts."""

    answer: qa_reader.Answer
    passages: tuple[Hit, ...]
    note: str | None = None
    written: bool = True


class IterativeAnswers:
    """Answers each question on one commit, which supplies the passages and the documents that contain them."""

    def __init__(self, store: Store, queries: QueryService, client: ModelClient) -> None:
        self._store = store
        self._queries = queries
        self._client = client

    async def answer(self, request: AskRequest, report: Callable[[StepEvent | AskProgress], None]) -> AskResponse:
        """Answers the question. Reports the steps (only if the request has `steps`), and the answer's text as it grows."""
        began = time.perf_counter()
        pinned = await self._queries.pinned(request.scope, request.as_of)
        budget, form = budget_of(request), answer_form_of(request)
        spending = Spending(budget)
        several = request.steps is not None
        remembered: list[tuple[int, int]] = []

        async def retrieve_passages(query: str) -> RetrievalResult:
            try:
                filtered = spending.calls + 2 <= budget.calls and spending.has_tokens_for()
                found = await self._queries.retrieve(query, request, pinned, filtered)
                remembered.extend(found.remembered)
                return found
            except UpstreamFailed as error:  # the encoder's server failed
                raise ModelDown(error.detail) from None

        def report_step(step: IterativeStep) -> None:
            if several:
                report(_step_event(step))

        try:
            iterated = await iterate(
                request.question, retrieve_passages, self._client, steps_of(request), request.k, spending, report_step
            )
        except ModelError as error:
            raise UpstreamFailed(str(error)) from None
        if several:
            report(StepsEnded(stopped=iterated.stopped))
        found = iterated.passages
        passages = found
        if several:
            passages = fit_passages(found, lambda some: answer_prompt(request.question, some, form), spending)
        read = await self._read(
            request.question, form, iterated, passages, spending, lambda text: report(AskProgress(text=text))
        )
        notes = [*dict.fromkeys(step.note for step in iterated.steps), end_note(iterated, budget), read.note]
        took_ms = (time.perf_counter() - began) * 1000
        answer = _response(request, pinned, iterated, read, spending, took_ms, notes)
        return answer.model_copy(update={"remembered": _remembered(remembered)})

    async def _read(
        self,
        question: str,
        form: AnswerForm,
        iterated: IterativeResult,
        passages: Sequence[Hit],
        spending: Spending,
        tell: Callable[[str], None],
    ) -> ReaderAnswer:
        """Returns the answer from `passages`, or from fewer passages if the model refuses the prompt as too long. If the model
        fails, returns the thoughts. `tell` receives the answer's text as it grows."""
        reason = f"no more than {spending.budget.tokens:,} tokens were allowed"
        if len(passages) < len(iterated.passages) and not passages:
            return _unwritten(iterated, f"the answer could not be written: {reason}")
        while True:
            messages, limit_s = answer_prompt(question, passages, form), spending.seconds_left(final=True)
            streamed = await stream_answer(self._client, messages, len(passages), limit_s, tell, form)
            spending.charge(1, streamed.prompt_tokens, streamed.completion_tokens)
            is_too_long = isinstance(streamed.error, ModelRefused) and streamed.error.too_long
            if not is_too_long or len(passages) < 2:
                break
            passages, reason = halved(passages), "the model refused a longer prompt"
        if streamed.answer is not None:
            left_out = len(iterated.passages) - len(passages)
            note = f"{left_out} of {len(iterated.passages)} passages were left out of the answer: {reason}"
            return ReaderAnswer(streamed.answer, tuple(passages), note if left_out else None)
        failure = failure_of(streamed.error, spending.budget.seconds)
        if not iterated.thoughts:
            raise failure
        return _unwritten(iterated, f"the answer consists of the thoughts of the steps: {failure.detail}")


def _remembered(tokens: Sequence[tuple[int, int]]) -> QueryCost | None:
    if not tokens:
        return None
    prompt, completion = (sum(each) for each in zip(*tokens, strict=True))
    return QueryCost(calls=len(tokens), tokens=Tokens(prompt=prompt, completion=completion), remembered=True)


def failure_of(error: ModelError | TimeoutError | None, limit_s: float) -> UpstreamFailed | TimedOut:
    """Returns the error for an answer that the model did not complete."""
    if isinstance(error, TimeoutError):
        return TimedOut(f"the answer was not written within the {limit_s:g} s allowed")
    if isinstance(error, BadAnswer):
        return UpstreamFailed(f"{error}; {BAD_ANSWER_HINT}")
    return UpstreamFailed(str(error))


def _unwritten(iterated: IterativeResult, note: str) -> ReaderAnswer:
    """Returns an answer that needs no model: the thoughts, or the titles of the passages if there are no thoughts."""
    text, cited = answer_from_thoughts(iterated)
    if not text:
        cited = iterated.passages
        text = f"{NO_ANSWER_WRITTEN} Found: {passage_titles(cited)}."
    found = iterated.stopped == "answered"
    return ReaderAnswer(qa_reader.Answer(text, tuple(range(1, len(cited) + 1)), "", found), cited, note, written=False)


def _step_event(step: IterativeStep) -> StepEvent:
    if step.thought is not None:
        return StepThought(step=step.number, thought=Thought.model_validate(asdict(step.thought)))
    new = set(step.new)
    titles = [hit.title or hit.text[:60] for hit in step.found if hit.id in new][:NEW_TITLES_MAX]
    return StepRetrieved(step=step.number, query=step.query, passages=len(step.found), new=len(new), titles=titles)


def _passage(hit: Hit, *, text: bool) -> dict[str, Any]:
    whole = {"id": hit.id, "title": hit.title, "score": round(hit.score, 6)}
    return whole | {"text": hit.text} if text else whole


def _step(step: IterativeStep) -> dict[str, Any]:
    """Returns the step as JSON. Passages in `found` include their texts; passages in `passages` (the best so far) do not."""
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


def _retrieved(pinned: DocumentSnapshot, iterated: IterativeResult) -> list[RetrievedPassage]:
    """Returns all passages that the steps found: several steps are merged as for the answer, a single step keeps its order."""
    found = [hit for step in iterated.steps for hit in (*step.found, *step.deeper)]
    hits = found if len(iterated.steps) == 1 else merge_hits([], found, len(found))
    return [retrieved_passage(pinned, rank, hit, hit.versions) for rank, hit in enumerate(hits, 1)]


def _response(
    request: AskRequest,
    pinned: DocumentSnapshot,
    iterated: IterativeResult,
    read: ReaderAnswer,
    spending: Spending,
    took_ms: float,
    notes: Sequence[str | None],
) -> AskResponse:
    cited = [(rank, hit) for rank, hit in enumerate(read.passages, 1) if rank in read.answer.cited]
    several = request.steps is not None
    return AskResponse(
        question=request.question,
        answer=read.answer.text,
        citations=[citation(pinned, rank, hit.id, hit.title, hit.text) for rank, hit in cited],
        steps=[_step(step) for step in iterated.steps] if several else [],
        tokens=Tokens(prompt=spending.prompt_tokens, completion=spending.completion_tokens),
        took_ms=round(took_ms, 3),
        found=read.answer.found,
        short=read.answer.short,
        reasoning=read.answer.reasoning or None,
        passages=_retrieved(pinned, iterated) if request.passages or request.depth is not None else [],
        note=joined(*notes),
        answerer=Answerer.ITERATIVE if several else Answerer.SINGLE,
        commit=pinned.snapshot.commit,
        calls=spending.calls,
        stopped=iterated.stopped if several else None,
        written=read.written,
    )


class ClosedBookAnswers:
    def __init__(self, store: Store, client: ModelClient) -> None:
        self._store = store
        self._client = client

    async def answer(self, request: AskRequest, report: Callable[[StepEvent | AskProgress], None]) -> AskResponse:
        """Answers the question, and reports the text as it grows. Raises UpstreamFailed if the model fails."""
        began, form = time.perf_counter(), answer_form_of(request)
        limit_s = budget_of(request).seconds
        messages = reader_prompt(request.question, (), form)
        written = await stream_answer(
            self._client, messages, 0, limit_s, lambda text: report(AskProgress(text=text)), form
        )
        if written.answer is None:
            raise failure_of(written.error, limit_s)
        return AskResponse(
            question=request.question,
            answer=written.answer.text,
            citations=[],
            steps=[],
            tokens=Tokens(prompt=written.prompt_tokens, completion=written.completion_tokens),
            took_ms=round((time.perf_counter() - began) * 1000, 3),
            found=written.answer.found,
            short=written.answer.short,
            reasoning=written.answer.reasoning or None,
            note="answered without the memory",
            commit=self._store.snapshot().commit,
        )
