"""Replays a step from its record: the same prompts and replies give the same concerns, changes and memory."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from memory.answering.working_memory import prompts
from memory.answering.working_memory.inquiries import Concern, Inquiry
from memory.answering.working_memory.judgement import read_subquery
from memory.answering.working_memory.point_updates import apply_evolution, apply_merges
from memory.answering.working_memory.points import WorkingMemory
from memory.answering.working_memory.prompts import material_of
from memory.answering.working_memory.step import (
    evolve_messages,
    judge_messages,
    judgement_of,
    judgement_of_empty_memory,
    starts_empty,
    subquery_messages,
    wants_merging,
    with_merging,
    with_worded_concerns,
)
from memory.answering.working_memory.trace import DeepSettings, ModelCall, StepRecord, Trace
from memory.llm.json_answers import parse


def replay_step(
    record: StepRecord,
    question: str,
    settings: DeepSettings,
    retrieve: Callable[[WorkingMemory, Concern], Inquiry] | None = None,
) -> StepRecord:
    """Compute the step again. The result equals `record` if the step depends only on recorded data.

    The model's replies and failures are the recorded ones. `retrieve`, if given, retrieves again on the same commit; otherwise
    the recorded results are used. Raises BadAnswer if a recorded reply is invalid.
    """
    again = StepRecord(
        record.number,
        record.before,
        record.before,
        asked=record.asked,
        answer=record.answer,
        own_seconds=record.own_seconds,
    )
    if starts_empty(record):
        said = judgement_of_empty_memory(question)
    else:
        if record.judged is None:
            return again
        messages = judge_messages(question, record, settings)
        again = replace(again, judged=replace(record.judged, messages=messages))
        if record.judged.reply is None:
            return again
        said = judgement_of(_value(record.judged), record, settings, record.judged.cut)
    again = replace(again, enough=said.enough, concerns=said.concerns, refused=said.refused)
    if said.enough or not said.concerns:
        return again
    if record.worded:
        again = _words_again(again, record, question)
    inquiries = record.inquiries
    if retrieve is not None:
        withheld = {inquiry.concern: inquiry.withheld for inquiry in record.inquiries}
        found = [retrieve(record.before, concern) for concern in again.concerns]
        inquiries = tuple(replace(each, withheld=withheld.get(each.concern, ())) for each in found)
    again = replace(again, inquiries=inquiries)
    if record.evolved is None:
        return again
    again = replace(again, evolved=replace(record.evolved, messages=evolve_messages(question, again, settings)))
    if record.evolved.reply is None:
        return again
    in_graph = set(record.held)
    material, proposed = material_of(inquiries), _value(record.evolved)
    evolution = apply_evolution(record.before, material, proposed, settings, in_graph.__contains__, record.evolved.cut)
    again = replace(
        again,
        after=evolution.memory,
        changes=evolution.changes,
        refused=(*again.refused, *evolution.refused),
        held=evolution.held,
    )
    if record.merged is None or not wants_merging(again, settings):
        return again
    again = replace(again, merged=replace(record.merged, messages=prompts.merge_prompt(question, again.after)))
    if record.merged.reply is None:
        return again
    return with_merging(again, apply_merges(again.after, _value(record.merged), record.merged.cut))


def _words_again(again: StepRecord, record: StepRecord, question: str) -> StepRecord:
    """Return the step with its concerns' subqueries from the recorded replies."""
    calls = []
    subqueries: list[str | None] = []
    for concern, call in zip(again.concerns, record.worded, strict=False):
        calls.append(replace(call, messages=subquery_messages(question, again, concern, subqueries)))
        subqueries.append(read_subquery(_value(call)) if call.reply is not None else None)
    return with_worded_concerns(replace(again, worded=tuple(calls)), subqueries)


def _value(call: ModelCall) -> object:
    assert call.reply is not None
    return parse(call.reply).value


def trace_from_json(value: Any) -> Trace:
    return TypeAdapter(Trace).validate_python(value)


def every_call(trace: Trace) -> list[ModelCall]:
    """The model calls of a deep question, in order."""
    of_steps = [
        call
        for step in trace.steps
        for call in (step.judged, *step.worded, step.evolved, step.merged, *(step.answer.calls if step.answer else ()))
        if call is not None
    ]
    return [*of_steps, *trace.answered]
