"""Answers a deep question with HGMem's steps on one snapshot (arXiv 2512.23959, section 3)."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from memory.answering.answer_form import DEFAULT_FORM, AnswerForm
from memory.answering.budget import Spending
from memory.answering.working_memory.deep_answer import DeepAnswer, TokenCount
from memory.answering.working_memory.deep_context import DeepContext, RunInThread
from memory.answering.working_memory.records.events import AnswerBegan, DeepEvent
from memory.answering.working_memory.records.points import WorkingMemory
from memory.answering.working_memory.records.trace import DeepSettings, StepRecord, Trace
from memory.answering.working_memory.step import StepsEnd, run_step
from memory.answering.working_memory.subquery_retrieval import supported_points
from memory.answering.working_memory.write_answer import answer_after_step, write_answer
from memory.llm.client import ModelClient
from memory.types import Encoder
from store.snapshot import Snapshot


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

    `earlier` contains the points of earlier questions. Points whose passages are not in this commit are dropped, and the trace
    lists them. `on_event` is called on the event loop for each event, and must return immediately. `in_thread` runs work that
    occupies the processor. `form` is the form of the answer.

    If the model fails in a step, or a budget is reached, the answer is made from the current points and passages, and `note`
    says so. If the model also fails for the answer, the points' descriptions are the answer. Raises
    `memory.llm.errors.ModelError` if there is nothing to answer from, which happens only without points.
    """
    settings = settings or DeepSettings()
    spending = Spending(settings.budget)
    client = client.at_temperature(settings.temperature)
    context = DeepContext(question, snapshot, encoder, client, settings, spending, on_event, in_thread, form)
    before, forgotten = supported_points(earlier or WorkingMemory(), snapshot)
    notes = (
        [f"{len(forgotten)} earlier points rest on nothing that is still there and were left out"] if forgotten else []
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
        return [f"step {number} failed ({end.failure.message}): answered from what was known by then"]
    return [f"{end.failure.message}: answered from what was known in step {number}"]
