"""Answers a deep question with HGMem's steps on one snapshot (arXiv 2512.23959, section 3).

The model writes the answer from points and passages. If the model fails, the answer is the text of the points or the titles of
the passages.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from memory.answering import qa_reader
from memory.answering.answer_form import DEFAULT_FORM, AnswerForm, answer_schema
from memory.answering.budget import BudgetReached, Spending, fit_passages, halved
from memory.answering.qa_reader import stream_answer
from memory.answering.working_memory import prompts
from memory.answering.working_memory.deep_answer import (
    CitedPassage,
    DeepAnswer,
    TokenCount,
    answer_from_passages,
    answer_from_points,
    answer_passages,
    cited,
)
from memory.answering.working_memory.inquiries import FoundPassage
from memory.answering.working_memory.model_call import (
    CallFailure,
    CallResult,
    DeepContext,
    RunInThread,
    call_model,
    failure_of,
)
from memory.answering.working_memory.points import WorkingMemory
from memory.answering.working_memory.step import StepsEnd, run_step
from memory.answering.working_memory.subquery_retrieval import QueryVector, supported_points
from memory.answering.working_memory.trace import (
    AnswerBegan,
    AnswerGrew,
    DeepEvent,
    DeepSettings,
    ModelCall,
    StepAnswer,
    StepRecord,
    Trace,
)
from memory.encoder.errors import EncoderServerDown
from memory.llm.client import ModelClient
from memory.llm.errors import ModelDown
from memory.llm.json_answers import replace_surrogates
from memory.types import Encoder
from store.snapshot import Snapshot

MAX_ANSWER_SHORTENINGS = 3
"""Maximum number of times that half of the passages are omitted because the model refuses the prompt as too long."""


async def ask_deep(
    question: str,
    snapshot: Snapshot,
    encoder: Encoder,
    client: ModelClient,
    settings: DeepSettings | None = None,
    earlier: WorkingMemory | None = None,
    on_event: Callable[[DeepEvent], None] = lambda _event: None,
    in_thread: RunInThread = asyncio.to_thread,
    form: AnswerForm = DEFAULT_FORM,
) -> DeepAnswer:
    """Answers `question` from the memory as of `snapshot`. The result contains the trace of all steps.

    `earlier` contains the points of earlier questions. Points are dropped if their passages are not in this commit; the trace
    lists the dropped points. `on_event` is called on the event loop for each event, and must return immediately. `in_thread`
    runs processor-bound work.

    If the model fails in a step, or a limit is reached, the answer is made from the current points and passages, and `note`
    gives the reason. If the model fails for the answer too, the answer consists of the points' descriptions, or of the
    passages' titles. Raises `memory.llm.errors.ModelError` if the model failed and there are no points.
    """
    settings = settings or DeepSettings()
    spending = Spending(settings.budget)
    client = client.at_temperature(settings.temperature)
    context = DeepContext(question, snapshot, encoder, client, settings, spending, on_event, in_thread, form)
    before, forgotten = supported_points(earlier or WorkingMemory(), snapshot)
    notes = (
        [f"{len(forgotten)} earlier points were left out: their passages are no longer in the memory"]
        if forgotten
        else []
    )
    memory, end = before, StepsEnd("steps")
    asked: list[str] = []
    steps: list[StepRecord] = []
    for number in range(settings.steps + 1):
        step = await run_step(context, number, memory, asked)
        memory = step.record.after
        if settings.each_step and step.end is None and number < settings.steps:
            written, note = await answer_after_step(context, memory, [*steps, step.record])
            step = replace(step, record=replace(step.record, answer=written))
            if note is not None:
                notes.append(note)
        steps.append(step.record)
        asked += [concern.subquery for concern in step.record.concerns]
        if step.note:
            notes.append(step.note)
        if step.end is not None:
            end = step.end
            notes += _end_notes(end, number)
            break
    on_event(AnswerBegan(end.stopped, len(memory.points), "; ".join(notes) or None))
    final = await write_answer(context, memory, steps, end)
    if final.note:
        notes.append(final.note)
    seconds = spending.seconds
    return DeepAnswer(
        question=question,
        text=final.text,
        short=final.short,
        found=final.found,
        citations=final.citations,
        trace=Trace(question, snapshot.commit, settings, before, forgotten, tuple(steps), tuple(final.calls)),
        tokens=TokenCount(spending.prompt_tokens, spending.completion_tokens),
        stopped=end.stopped,
        note="; ".join(notes) or None,
        written=final.written,
        requests=spending.calls,
        seconds=round(seconds, 6),
        own_seconds=round(max(seconds - spending.model_seconds, 0.0), 6),
        reasoning=final.reasoning,
        passages=final.passages,
    )


def _end_notes(end: StepsEnd, number: int) -> list[str]:
    if end.failure is None:
        return []
    if end.stopped == "model":
        return [f"step {number} failed ({end.failure.message}): the answer uses what was known before that step"]
    return [f"{end.failure.message}: the answer uses what was known in step {number}"]


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """`written` is false if the model did not write it."""

    text: str
    citations: tuple[CitedPassage, ...]
    calls: list[ModelCall]
    short: str = ""
    found: bool = False
    written: bool = True
    note: str | None = None
    reasoning: str = ""
    passages: tuple[FoundPassage, ...] = ()
    """Passages that the answer was written from."""


async def write_answer(
    context: DeepContext, memory: WorkingMemory, steps: Sequence[StepRecord], end: StepsEnd
) -> WrittenAnswer:
    """Asks the model for the answer, with retries. Raises ModelError if all tries fail and the memory has no points."""
    found = await _passages(context, memory, steps)
    if not found and not memory.points:
        if end.failure is not None and end.stopped == "model":
            raise end.failure.error or ModelDown(end.failure.message)
        text = qa_reader.NOT_IN_MEMORY if end.failure is None else qa_reader.NO_ANSWER_WRITTEN
        return WrittenAnswer(text, (), [], written=end.failure is None)
    shown = fit_passages(
        found, lambda some: prompts.deep_answer_prompt(context.question, memory, some, context.form), context.spending
    )
    result = await _streamed(context, memory, shown)
    calls = [result.call]
    if result.failure is not None and result.failure.stopped == "model":
        for _ in range(MAX_ANSWER_SHORTENINGS):
            failure, shown = result.failure, halved(shown) if result.failure.too_long else shown
            result = await _answer_at_once(context, memory, shown, final=True)
            calls.append(result.call)
            if result.failure is None or not (failure.too_long and result.failure.too_long and len(shown) > 1):
                break
    if len(calls) > 1 and result.value is not None:
        context.on_event(AnswerGrew(result.value.text))
    if result.value is not None:
        answer = result.value
        citations = cited(answer, memory, shown)
        return WrittenAnswer(
            answer.text, citations, calls, answer.short, answer.found, reasoning=answer.reasoning, passages=shown
        )
    assert result.failure is not None
    if memory.points:
        text, citations = answer_from_points(memory, found)
        note = f"the answer could not be written ({result.failure.message}): these are the memory's points"
    elif result.failure.error is not None:
        raise result.failure.error
    else:
        text, citations = answer_from_passages(found)
        note = f"the answer could not be written ({result.failure.message})"
    context.on_event(AnswerGrew(text))
    return WrittenAnswer(text, citations, calls, written=False, note=note, passages=found)


async def answer_after_step(
    context: DeepContext, memory: WorkingMemory, steps: Sequence[StepRecord]
) -> tuple[StepAnswer | None, str | None]:
    """Returns the answer after the last of `steps`, for plots; None and a note if the model fails.

    Calls the model once, without the budget reserved for the final answer.
    """
    found = await _passages(context, memory, steps)
    if not found and not memory.points:
        return None, None
    shown = fit_passages(
        found, lambda some: prompts.deep_answer_prompt(context.question, memory, some, context.form), context.spending
    )
    result = await _answer_at_once(context, memory, shown, final=False)
    if result.value is None:
        assert result.failure is not None
        return None, f"no answer could be written after step {steps[-1].number} ({result.failure.message})"
    answer = result.value
    return StepAnswer(answer.text, answer.short, answer.found, (result.call,), tuple(shown)), None


async def _passages(
    context: DeepContext, memory: WorkingMemory, steps: Sequence[StepRecord]
) -> tuple[FoundPassage, ...]:
    """Returns the passages for the answer. If the encoder is unavailable, they keep the order in which they were found."""

    def select(vector: QueryVector | None) -> tuple[FoundPassage, ...]:
        # The vector is zero if the encoder knows no word of the question.
        known = vector if vector is not None and vector.any() else None
        return answer_passages(context.snapshot, known, memory, steps, context.settings)

    try:
        async with asyncio.timeout(context.spending.require_seconds(final=True)):
            found: tuple[FoundPassage, ...] = await context.in_thread(
                lambda: select(context.encoder.encode_query(context.question))
            )
        return found
    except (EncoderServerDown, BudgetReached, TimeoutError):
        return select(None)


async def _streamed(
    context: DeepContext, memory: WorkingMemory, passages: tuple[FoundPassage, ...]
) -> CallResult[qa_reader.Answer]:
    """Asks once for the answer and shows it while the model writes it."""
    spending = context.spending
    messages = prompts.deep_answer_prompt(context.question, memory, passages, context.form)
    began = time.monotonic()
    try:
        limit_s = spending.require_call(messages, final=True)
        spending.take_request(final=True)
    except BudgetReached as reached:
        error = str(reached)
        return CallResult(ModelCall("answer", messages, None, error, 0), None, CallFailure(reached.limit, error))
    streamed = await stream_answer(
        context.client,
        messages,
        len(passages),
        limit_s,
        lambda text: context.on_event(AnswerGrew(text)),
        context.form,
    )
    seconds = time.monotonic() - began
    spending.model_seconds += seconds
    spending.charge(0, streamed.prompt_tokens, streamed.completion_tokens)
    failure = None
    if isinstance(streamed.error, TimeoutError):
        failure = CallFailure("seconds", str(spending.out_of_time()))
    elif streamed.error is not None:
        failure = failure_of(streamed.error)
    call = ModelCall(
        "answer",
        messages,
        replace_surrogates(streamed.reply.text) if failure is None else None,
        failure.message if failure is not None else None,
        1,
        streamed.prompt_tokens,
        streamed.completion_tokens,
        round(seconds, 6),
        failure is None and streamed.reply.cut,
    )
    return CallResult(call, streamed.answer, failure)


async def _answer_at_once(
    context: DeepContext, memory: WorkingMemory, passages: tuple[FoundPassage, ...], final: bool
) -> CallResult[qa_reader.Answer]:
    """Asks once for the answer, without showing unfinished text."""
    count = len(passages)
    again = await call_model(
        context.client,
        context.spending,
        "answer",
        prompts.deep_answer_prompt(context.question, memory, passages, context.form),
        answer_schema(context.form),
        lambda value: (value, qa_reader.answer_from_json(value, count, form=context.form)),
        max_tokens=context.form.max_tokens,
        retries=0,
        final=final,
    )
    if again.value is None:
        return CallResult(again.call, None, again.failure)
    answer = qa_reader.answer_from_json(again.value[0], count, again.call.cut, context.form)
    return CallResult(again.call, answer)
