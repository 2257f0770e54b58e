"""One step of HGMem: judge, raise concerns, write subqueries, retrieve, update and insert, merge (sections 3.2, 3.4, 3.5).

This file calls the model and retrieves. Pure functions convert the results to concerns and points, so that tests can repeat a
step from its record.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from memory.answering.budget import BudgetReached
from memory.answering.working_memory import prompts
from memory.answering.working_memory.inquiries import Concern, Inquiry
from memory.answering.working_memory.judgement import (
    Judgement,
    read_concerns,
    read_judgement,
    read_subquery,
    with_subqueries,
)
from memory.answering.working_memory.model_call import CallFailure, CallResult, DeepContext, call_model
from memory.answering.working_memory.point_updates import Evolution, apply_evolution, apply_merges, lists
from memory.answering.working_memory.points import WorkingMemory
from memory.answering.working_memory.prompts import at_most, material_of, shortened
from memory.answering.working_memory.subquery_retrieval import inquire
from memory.answering.working_memory.trace import (
    DeepSettings,
    DeepStopReason,
    EvidenceFound,
    MemoryJudged,
    ModelCall,
    PointsChanged,
    StepBegan,
    StepRecord,
)
from memory.encoder.errors import EncoderServerDown
from memory.llm.client import ChatMessage
from store.snapshot import Snapshot

MAX_EVIDENCE_SHORTENINGS = 2
"""Maximum number of times per step that hippod withholds half of the passages because the model refuses the prompt as too
long."""
CUT_JUDGEMENT = "the model's answer was cut off before it had named one thing that is missing"


@dataclass(frozen=True, slots=True)
class StepsEnd:
    """The reason why the steps end with this step. `failure` is the failed call that ended them, if any."""

    stopped: DeepStopReason
    failure: CallFailure | None = None


@dataclass(frozen=True, slots=True)
class StepResult:
    """`note` tells the user about a failure that did not end the steps."""

    record: StepRecord
    end: StepsEnd | None = None
    note: str | None = None


async def run_step(context: DeepContext, number: int, memory: WorkingMemory, asked: Sequence[str]) -> StepResult:
    """Runs step `number`, which begins with the points of `memory`. `asked`: the earlier subqueries. Does not raise for
    failures of the model."""
    began, waited = time.monotonic(), context.spending.model_seconds
    context.on_event(StepBegan(number, len(memory.points)))
    result = await _make_step(context, StepRecord(number, memory, memory, asked=tuple(asked)))
    own = time.monotonic() - began - (context.spending.model_seconds - waited)
    return replace(result, record=replace(result.record, own_seconds=round(max(own, 0.0), 6)))


async def _make_step(context: DeepContext, record: StepRecord) -> StepResult:
    settings, memory, number = context.settings, record.before, record.number
    if starts_empty(record):
        judged_memory = judgement_of_empty_memory(context.question)
    else:
        judged = await call_model(
            context.client,
            context.spending,
            "judge",
            judge_messages(context.question, record, settings),
            prompts.JUDGEMENT_SCHEMA if settings.quick else prompts.CONCERNS_SCHEMA,
            _judgement_reader(record, settings),
        )
        record = replace(record, judged=judged.call)
        if judged.value is None:
            return StepResult(record, _end_of(judged))
        judged_memory = judgement_of(judged.value, record, settings, judged.call.cut)
    record = replace(
        record, enough=judged_memory.enough, concerns=judged_memory.concerns, refused=judged_memory.refused
    )
    note = None
    if judged_memory.concerns and not settings.quick and not starts_empty(record):
        record, failure, note = await _word_subqueries(context, record)
        judged_memory = replace(judged_memory, concerns=record.concerns)
        if failure is not None:
            return StepResult(record, StepsEnd(failure.stopped, failure))
    context.on_event(MemoryJudged(number, judged_memory.enough, judged_memory.concerns))
    if judged_memory.enough and not settings.forced:
        return StepResult(record, StepsEnd("enough"))
    if not judged_memory.concerns:
        if settings.forced:
            return StepResult(record, note=note)
        cut = record.judged is not None and record.judged.cut
        return StepResult(
            record, StepsEnd("model", CallFailure("model", CUT_JUDGEMENT)) if cut else StepsEnd("nothing new")
        )

    found = await _inquire_all(context, memory, judged_memory.concerns)
    if isinstance(found, CallFailure):
        return StepResult(record, StepsEnd(found.stopped, found))
    inquiries = found
    record = replace(record, inquiries=inquiries)
    for inquiry in inquiries:
        context.on_event(EvidenceFound(number, inquiry))
    if not any(inquiry.passages for inquiry in inquiries):
        is_end = starts_empty(record) and not settings.forced
        return StepResult(record, StepsEnd("nothing new") if is_end else None, note)

    record, evolving = await _ask_for_evolution(context, record)
    if evolving.value is None:
        return StepResult(record, _end_of(evolving))
    evolution = apply_evolution(
        memory, material_of(record.inquiries), evolving.value, settings, _in_graph(context.snapshot), evolving.call.cut
    )
    record = replace(
        record,
        after=evolution.memory,
        changes=evolution.changes,
        refused=(*record.refused, *evolution.refused),
        held=evolution.held,
    )
    context.on_event(PointsChanged(number, evolution.changes, evolution.refused))
    if not wants_merging(record, settings):
        return StepResult(record, note=note)
    merged = await _ask_for_merges(context, record)
    return replace(merged, note="; ".join(each for each in (note, merged.note) if each) or None)


async def _word_subqueries(
    context: DeepContext, record: StepRecord
) -> tuple[StepRecord, CallFailure | None, str | None]:
    """Asks for the subquery of each concern in order; each prompt shows the earlier subqueries.

    Returns the failure that ends the steps, if any: the budget is reached, or the model wrote no subquery at all. If the model
    failed for some concerns, the note gives their number.
    """
    calls: list[ModelCall] = []
    subqueries: list[str | None] = []
    failed: CallFailure | None = None
    for concern in record.concerns:
        called = await call_model(
            context.client,
            context.spending,
            "subquery",
            subquery_messages(context.question, record, concern, subqueries),
            prompts.SUBQUERY_SCHEMA,
            read_subquery,
        )
        calls.append(called.call)
        subqueries.append(called.value)
        if called.failure is not None:
            failed = called.failure
            if failed.stopped != "model":
                break
    record = with_worded_concerns(replace(record, worded=tuple(calls)), subqueries)
    if failed is None or (failed.stopped == "model" and record.concerns):
        lost = subqueries.count(None)
        note = f"{lost} of {len(calls)} subqueries of step {record.number} could not be written" if lost else None
        return record, None, note
    return record, failed, None


async def _ask_for_evolution(context: DeepContext, record: StepRecord) -> tuple[StepRecord, CallResult[object]]:
    """Asks for updates and insertions. If the model refuses the prompt as too long, asks again with half of the passages."""
    if context.shown_passages:
        record = replace(record, inquiries=at_most(record.inquiries, min(context.shown_passages)))
    for tries_left in reversed(range(MAX_EVIDENCE_SHORTENINGS + 1)):
        called = await call_model(
            context.client,
            context.spending,
            "evolve",
            evolve_messages(context.question, record, context.settings),
            prompts.evolution_schema(context.settings),
            _list_reader("inserts", "updates"),
        )
        record = replace(record, evolved=called.call)
        if called.failure is None or not called.failure.too_long or not tries_left:
            break
        shorter = shortened(record.inquiries)
        if shorter is None:
            break
        record = replace(record, inquiries=shorter)
        context.shown_passages.append(len(material_of(shorter).passages))
    return record, called


async def _ask_for_merges(context: DeepContext, record: StepRecord) -> StepResult:
    memory = record.after
    called = await call_model(
        context.client,
        context.spending,
        "merge",
        prompts.merge_prompt(context.question, memory),
        prompts.MERGING_SCHEMA,
        _list_reader("merges"),
    )
    record = replace(record, merged=called.call)
    if called.value is None:
        ended = _end_of(called)
        if ended.stopped != "model":
            return StepResult(record, ended)
        # The points stay unmerged, so nothing is lost. If the server is unavailable, the next call ends the steps.
        return StepResult(
            record, note=f"merging failed in step {record.number} ({called.call.error}); the points stay apart"
        )
    evolution = apply_merges(memory, called.value, called.call.cut)
    record = with_merging(record, evolution)
    context.on_event(PointsChanged(record.number, evolution.changes, evolution.refused))
    return StepResult(record)


def starts_empty(record: StepRecord) -> bool:
    """Whether the step begins without points. Nothing is judged then, and the question itself is the subquery."""
    return record.number == 0 and not record.before.points


def judgement_of_empty_memory(question: str) -> Judgement:
    """Returns the judgement of an empty memory: the question itself is a global concern."""
    return Judgement(False, (Concern(question, question),))


def judge_messages(question: str, record: StepRecord, settings: DeepSettings) -> tuple[ChatMessage, ...]:
    if settings.quick:
        return prompts.judge_prompt(question, record.before, record.asked, settings)
    return prompts.concerns_prompt(question, record.before, settings)


def judgement_of(value: object, record: StepRecord, settings: DeepSettings, cut: bool = False) -> Judgement:
    if settings.quick:
        return read_judgement(value, record.before, record.asked, settings, cut)
    return read_concerns(value, record.before, settings, cut)


def subquery_messages(
    question: str, record: StepRecord, concern: Concern, before: Sequence[str | None]
) -> tuple[ChatMessage, ...]:
    """`before`: the subqueries of the step's earlier concerns; None for a failed call."""
    asked = (*record.asked, *(subquery for subquery in before if subquery is not None))
    return prompts.subquery_prompt(question, record.before, concern, asked)


def with_worded_concerns(record: StepRecord, subqueries: Sequence[str | None]) -> StepRecord:
    """Returns the record with the subqueries of its concerns. Concerns without a subquery are removed."""
    named = [*subqueries, *[None] * (len(record.concerns) - len(subqueries))]
    concerns, refused = with_subqueries(record.concerns, named, record.asked)
    return replace(record, concerns=concerns, refused=(*record.refused, *refused))


def evolve_messages(question: str, record: StepRecord, settings: DeepSettings) -> tuple[ChatMessage, ...]:
    subqueries = [concern.subquery for concern in record.concerns]
    return prompts.evolve_prompt(question, subqueries, record.before, material_of(record.inquiries), settings)


def wants_merging(record: StepRecord, settings: DeepSettings) -> bool:
    """Whether to ask for merges: the step changed points, and the memory has at least two points."""
    return settings.merge and len(record.after.points) > 1 and bool(record.changes)


def with_merging(record: StepRecord, evolution: Evolution) -> StepRecord:
    return replace(
        record,
        after=evolution.memory,
        changes=(*record.changes, *evolution.changes),
        refused=(*record.refused, *evolution.refused),
    )


def _list_reader(*names: str) -> Callable[[object], object]:
    """Returns a function that raises BadAnswer unless the JSON contains one of the lists; the client then asks again."""

    def read(value: object) -> object:
        lists(value, *names)
        return value

    return read


def _judgement_reader(record: StepRecord, settings: DeepSettings) -> Callable[[object], object]:
    """Returns a function that raises BadAnswer unless the JSON contains a judgement; the client then asks again."""

    def read(value: object) -> object:
        judgement_of(value, record, settings)
        return value

    return read


def _in_graph(snapshot: Snapshot) -> Callable[[str], bool]:
    return lambda phrase: snapshot.phrase_row(phrase) is not None


async def _inquire_all(
    context: DeepContext, memory: WorkingMemory, concerns: Sequence[Concern]
) -> tuple[Inquiry, ...] | CallFailure:
    def all_of_them() -> tuple[Inquiry, ...]:
        return tuple(
            inquire(context.snapshot, context.encoder, memory, concern, context.settings) for concern in concerns
        )

    try:
        async with asyncio.timeout(context.spending.require_seconds(final=False)):
            inquiries: tuple[Inquiry, ...] = await context.in_thread(all_of_them)
        return inquiries
    except EncoderServerDown as error:
        return CallFailure("model", str(error))
    except BudgetReached as reached:
        return CallFailure(reached.limit, str(reached))
    except TimeoutError:
        return CallFailure("seconds", str(context.spending.out_of_time()))


def _end_of(called: CallResult[object]) -> StepsEnd:
    assert called.failure is not None
    return StepsEnd(called.failure.stopped, called.failure)
