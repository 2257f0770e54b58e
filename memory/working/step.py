"""One step of HGMem: judge, retrieve, update and insert, merge (sections 3.3 and 3.4).

The calls and the retrieval are made here; what comes of them is worked out by pure functions, so that `replay` can do it
again from the record.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memory.encoder.errors import EncoderServerDown
from memory.llm.client import ModelClient
from memory.types import Encoder
from memory.working import prompts
from memory.working.calling import Called, Failure, call
from memory.working.changes import Evolution, evolve, lists, merge
from memory.working.evidence import inquire
from memory.working.judging import Judgement, judgement
from memory.working.material import at_most, material_of, shortened
from memory.working.spending import Reached, Spending
from memory.working.types import (
    Began,
    Changed,
    Concern,
    DeepSettings,
    Event,
    Found,
    Inquiry,
    InThread,
    Judged,
    Memory,
    Message,
    StepRecord,
    Stopped,
)
from store.snapshot import Snapshot

SHORTENINGS = 2
"""How often in a step half of the passages are withheld from a model that complains of the length."""
HALF_JUDGED = "the model's answer was cut off before it had named one thing that is missing"


@dataclass(frozen=True, slots=True)
class Work:
    """What every step of one question is given."""

    question: str
    snapshot: Snapshot
    encoder: Encoder
    client: ModelClient
    settings: DeepSettings
    spending: Spending
    tell: Callable[[Event], None]
    in_thread: InThread
    fits: list[int] = field(default_factory=list)
    """How many passages the model was shown after it had complained of more: later steps begin with so few."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Why the steps end with this one. `failure` is the call that came to nothing, if that is why."""

    stopped: Stopped
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """A step that was made. `note` is for the user where something went wrong without ending the steps."""

    record: StepRecord
    ended: Ended | None = None
    note: str | None = None


async def make_step(work: Work, number: int, memory: Memory, asked: Sequence[str]) -> Made:
    """The step after `memory`; `asked` are the subqueries before it. Whatever the model does ends up in what is returned."""
    began, waited = time.monotonic(), work.spending.waited
    work.tell(Began(number, len(memory.points)))
    made = await _make(work, StepRecord(number, memory, memory, asked=tuple(asked)))
    own = time.monotonic() - began - (work.spending.waited - waited)
    return replace(made, record=replace(made.record, own_seconds=round(max(own, 0.0), 6)))


async def _make(work: Work, record: StepRecord) -> Made:
    settings, memory, number = work.settings, record.before, record.number
    if is_first(record):
        said = first(work.question)
    else:
        judged = await call(
            work.client,
            work.spending,
            "judge",
            prompts.judge(work.question, memory, record.asked, settings),
            prompts.JUDGE,
            _judging(record, settings),
        )
        record = replace(record, judged=judged.call)
        if judged.value is None:
            return Made(record, _ended(judged))
        said = judgement(judged.value, memory, record.asked, settings, judged.call.cut)
    record = replace(record, enough=said.enough, concerns=said.concerns, refused=said.refused)
    work.tell(Judged(number, said.enough, said.concerns))
    if said.enough:
        return Made(record, Ended("enough"))
    if not said.concerns:
        half = record.judged is not None and record.judged.cut
        return Made(record, Ended("model", Failure("model", HALF_JUDGED)) if half else Ended("nothing new"))

    found = await _retrieval(work, memory, said.concerns)
    if isinstance(found, Failure):
        return Made(record, Ended(found.stopped, found))
    inquiries = found
    record = replace(record, inquiries=inquiries)
    for inquiry in inquiries:
        work.tell(Found(number, inquiry))
    if not any(inquiry.passages for inquiry in inquiries):
        return Made(record, Ended("nothing new") if is_first(record) else None)

    record, evolving = await _evolving(work, record)
    if evolving.value is None:
        return Made(record, _ended(evolving))
    evolution = evolve(
        memory, material_of(record.inquiries), evolving.value, settings, _held(work.snapshot), evolving.call.cut
    )
    record = replace(
        record,
        after=evolution.memory,
        changes=evolution.changes,
        refused=(*record.refused, *evolution.refused),
        held=evolution.held,
    )
    work.tell(Changed(number, evolution.changes, evolution.refused))
    if not wants_merging(record, settings):
        return Made(record)
    return await _merging(work, record)


async def _evolving(work: Work, record: StepRecord) -> tuple[StepRecord, Called[Any]]:
    """Asks for updates and insertions; again with half of the passages where the model complains of the length."""
    if work.fits:
        record = replace(record, inquiries=at_most(record.inquiries, min(work.fits)))
    for tries_left in reversed(range(SHORTENINGS + 1)):
        asked = await call(
            work.client,
            work.spending,
            "evolve",
            evolve_messages(work.question, record, work.settings),
            prompts.evolve_shape(work.settings),
            _shaped("inserts", "updates"),
        )
        record = replace(record, evolved=asked.call)
        if asked.failure is None or not asked.failure.too_long or not tries_left:
            break
        shorter = shortened(record.inquiries)
        if shorter is None:
            break
        record = replace(record, inquiries=shorter)
        work.fits.append(len(material_of(shorter).passages))
    return record, asked


async def _merging(work: Work, record: StepRecord) -> Made:
    memory = record.after
    asked = await call(
        work.client,
        work.spending,
        "merge",
        prompts.merge(work.question, memory),
        prompts.MERGE,
        _shaped("merges"),
    )
    record = replace(record, merged=asked.call)
    if asked.value is None:
        ended = _ended(asked)
        if ended.stopped != "model":
            return Made(record, ended)
        # Nothing is lost: the points stay apart. If the server is gone, the next call ends the steps.
        return Made(record, note=f"merging failed in step {record.number} ({asked.call.error}); the points stay apart")
    evolution = merge(memory, asked.value, asked.call.cut)
    record = with_merging(record, evolution)
    work.tell(Changed(record.number, evolution.changes, evolution.refused))
    return Made(record)


def is_first(record: StepRecord) -> bool:
    """Whether the step begins with nothing: then there is nothing to judge, and the question itself is searched for."""
    return record.number == 1 and not record.before.points


def first(question: str) -> Judgement:
    """What the first step of an empty memory looks for: all of the graph is beyond the memory."""
    return Judgement(False, (Concern(question, question),))


def evolve_messages(question: str, record: StepRecord, settings: DeepSettings) -> tuple[Message, ...]:
    subqueries = [concern.subquery for concern in record.concerns]
    return prompts.evolve(question, subqueries, record.before, material_of(record.inquiries), settings)


def wants_merging(record: StepRecord, settings: DeepSettings) -> bool:
    """Whether the points may belong together in a way that was not looked at before."""
    return settings.merge and len(record.after.points) > 1 and bool(record.changes)


def with_merging(record: StepRecord, evolution: Evolution) -> StepRecord:
    return replace(
        record,
        after=evolution.memory,
        changes=(*record.changes, *evolution.changes),
        refused=(*record.refused, *evolution.refused),
    )


def _shaped(*names: str) -> Callable[[Any], Any]:
    """Lets through what has one of the lists; the rest is for the client to ask again."""

    def read(value: Any) -> Any:
        lists(value, *names)
        return value

    return read


def _judging(record: StepRecord, settings: DeepSettings) -> Callable[[Any], Any]:
    """The same for a judgement."""

    def read(value: Any) -> Any:
        judgement(value, record.before, record.asked, settings)
        return value

    return read


def _held(snapshot: Snapshot) -> Callable[[str], bool]:
    return lambda phrase: snapshot.phrase_row(phrase) is not None


async def _retrieval(work: Work, memory: Memory, concerns: Sequence[Concern]) -> tuple[Inquiry, ...] | Failure:
    def all_of_them() -> tuple[Inquiry, ...]:
        return tuple(inquire(work.snapshot, work.encoder, memory, concern, work.settings) for concern in concerns)

    try:
        async with asyncio.timeout(work.spending.seconds_left(final=False)):
            inquiries: tuple[Inquiry, ...] = await work.in_thread(all_of_them)
        return inquiries
    except EncoderServerDown as error:
        return Failure("model", str(error))
    except Reached as reached:
        return Failure(reached.which, str(reached))
    except TimeoutError:
        return Failure("seconds", str(work.spending.late()))


def _ended(called: Called[Any]) -> Ended:
    assert called.failure is not None
    return Ended(called.failure.stopped, called.failure)
