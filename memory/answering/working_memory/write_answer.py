"""Writes the answer to a deep question: by the model from points and passages, or from these alone if the model fails."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from memory.answering import qa_reader
from memory.answering.answer_form import answer_schema
from memory.answering.answer_stream import stream_answer
from memory.answering.budget import BudgetReached, fit_passages, halved
from memory.answering.working_memory.deep_answer import (
    CitedPassage,
    answer_from_passages,
    answer_from_points,
    answer_passages,
    cited,
)
from memory.answering.working_memory.deep_context import DeepContext
from memory.answering.working_memory.prompting import prompts
from memory.answering.working_memory.prompting.model_call import CallFailure, CallResult, call_model, failure_of
from memory.answering.working_memory.records.events import AnswerGrew
from memory.answering.working_memory.records.inquiries import FoundPassage
from memory.answering.working_memory.records.points import WorkingMemory
from memory.answering.working_memory.records.trace import ModelCall, StepAnswer, StepRecord
from memory.answering.working_memory.step import StepsEnd
from memory.answering.working_memory.subquery_retrieval import QueryVector
from memory.encoder.errors import EncoderServerDown
from memory.llm.errors import ModelDown
from memory.llm.json_answers import replace_surrogates

MAX_ANSWER_SHORTENINGS = 3
"""Maximum number of times that half of the passages are left out because the model refuses the prompt as too long."""


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """The answer, and the calls that were made for it. `written` is false if the model did not write it."""

    text: str
    citations: tuple[CitedPassage, ...]
    calls: list[ModelCall]
    short: str = ""
    found: bool = False
    written: bool = True
    note: str | None = None
    reasoning: str = ""
    passages: tuple[FoundPassage, ...] = ()
    """What the answer was written from."""


async def write_answer(
    context: DeepContext, memory: WorkingMemory, steps: Sequence[StepRecord], end: StepsEnd
) -> WrittenAnswer:
    """Asks the model, and asks again if it fails. Raises ModelError if it fails and the memory has no points."""
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
            result = await _asked(context, memory, shown, final=True)
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

    Asks once, and does not use the budget that is reserved for the final answer.
    """
    found = await _passages(context, memory, steps)
    if not found and not memory.points:
        return None, None
    shown = fit_passages(
        found, lambda some: prompts.deep_answer_prompt(context.question, memory, some, context.form), context.spending
    )
    result = await _asked(context, memory, shown, final=False)
    if result.value is None:
        assert result.failure is not None
        return None, f"no answer could be written after step {steps[-1].number} ({result.failure.message})"
    answer = result.value
    return StepAnswer(answer.text, answer.short, answer.found, (result.call,), tuple(shown)), None


async def _passages(
    context: DeepContext, memory: WorkingMemory, steps: Sequence[StepRecord]
) -> tuple[FoundPassage, ...]:
    """Returns the passages for the answer, in the order in which they were found if the encoder is unavailable."""

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
    """Asks for the answer once and shows it while it is written."""
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


async def _asked(
    context: DeepContext, memory: WorkingMemory, passages: tuple[FoundPassage, ...], final: bool
) -> CallResult[qa_reader.Answer]:
    """Asks for the answer without showing it before it is complete."""
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
