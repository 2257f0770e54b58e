"""A deep question, from text to answer: HGMem's steps over one snapshot (arXiv 2512.23959, section 3)."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from memory import reading
from memory.encoder.errors import EncoderServerDown
from memory.llm.answers import writable
from memory.llm.client import ModelClient, Reply
from memory.llm.errors import BadAnswer, ModelDown, ModelError
from memory.types import Encoder
from memory.working import prompts
from memory.working.answering import UNWRITTEN, answer_passages, cited, fitting, from_passages, from_points, halved
from memory.working.calling import MAX_TOKENS, Called, Failure, call, spoken
from memory.working.evidence import Vector, vouched
from memory.working.spending import Reached, Spending, estimate
from memory.working.step import Ended, Work, make_step
from memory.working.types import (
    Answering,
    Cited,
    DeepAnswer,
    DeepSettings,
    Event,
    FoundPassage,
    InThread,
    Memory,
    Message,
    ModelCall,
    StepRecord,
    Tokens,
    Trace,
    Writing,
)
from store.snapshot import Snapshot

__all__ = ["InThread", "ask_deep"]

SHOWN_CHARS = 24
"""An answer that is being written is shown again each time that it has grown by so much."""


async def ask_deep(
    question: str,
    snapshot: Snapshot,
    encoder: Encoder,
    client: ModelClient,
    settings: DeepSettings | None = None,
    earlier: Memory | None = None,
    on_event: Callable[[Event], None] = lambda _event: None,
    in_thread: InThread | None = None,
) -> DeepAnswer:
    """The answer to `question` from the memory as of `snapshot`, with the trace of how it came about.

    `earlier` are points of earlier questions; those that this commit no longer vouches for are dropped, and named in the
    trace. `on_event` is called on the event loop as things happen, and must return at once. `in_thread` lends the daemon's
    own query threads, `asyncio.to_thread` by default.

    Where the model fails in a step, or a budget is reached, the answer is made from what there is and `note` says so; where
    it fails for the answer too, the points' descriptions are the answer. Raises `memory.llm.errors.ModelError` when there
    is nothing to answer from, which can only be while the memory has no point; `ValueError` for settings that cannot be.
    """
    settings = settings or DeepSettings()
    check(settings)
    spending = Spending(settings.budget)
    work = Work(
        question, snapshot, encoder, client, settings, spending, on_event, in_thread or (lambda f: asyncio.to_thread(f))
    )
    before, forgotten = vouched(earlier or Memory(), snapshot)
    notes = (
        [f"{len(forgotten)} earlier points rest on nothing that is still there and were left out"] if forgotten else []
    )
    memory, ended = before, Ended("steps")
    asked: list[str] = []
    steps: list[StepRecord] = []
    for number in range(1, settings.steps + 1):
        made = await make_step(work, number, memory, asked)
        steps.append(made.record)
        memory = made.record.after
        asked += [concern.subquery for concern in made.record.concerns]
        if made.note:
            notes.append(made.note)
        if made.ended is not None:
            ended = made.ended
            notes += _why(ended, number)
            break
    note = "; ".join(notes) or None
    on_event(Answering(ended.stopped, len(memory.points), note))
    told = await _answer(work, memory, steps, ended)
    if told.note:
        note = f"{note}; {told.note}" if note else told.note
    seconds = spending.seconds
    return DeepAnswer(
        question,
        told.text,
        told.short,
        told.found,
        told.citations,
        Trace(question, snapshot.commit, settings, before, forgotten, tuple(steps), tuple(told.calls)),
        Tokens(spending.prompt_tokens, spending.completion_tokens),
        ended.stopped,
        note,
        told.written,
        spending.requests,
        round(seconds, 6),
        round(max(seconds - spending.waited, 0.0), 6),
    )


def check(settings: DeepSettings) -> None:
    """Raises ValueError with a sentence for settings that cannot be."""
    least = {"steps": 1, "concerns": 1, "entities": 1, "triples": 0, "passages": 1, "answer_passages": 1}
    for name, lowest in least.items():
        if (value := getattr(settings, name)) < lowest:
            raise ValueError(f"{name} is {value}; a deep question needs at least {lowest}")
    for name, limit in (("calls", 1), ("tokens", 1), ("seconds", 0)):
        if (given := getattr(settings.budget, name)) < limit or given == 0:
            raise ValueError(f"the budget of {name} is {given}; it must be more than 0")
    if settings.only not in (None, "local", "global"):
        raise ValueError(f'only is "{settings.only}"; it must be "local" or "global"')


def _why(ended: Ended, number: int) -> list[str]:
    if ended.failure is None:
        return []
    if ended.stopped == "model":
        return [f"step {number} failed ({ended.failure.message}): answered from what was known by then"]
    return [f"{ended.failure.message}: answered from what was known in step {number}"]


@dataclass(frozen=True, slots=True)
class _Told:
    """What the answer is, and the calls that were made for it."""

    text: str
    citations: tuple[Cited, ...]
    calls: list[ModelCall]
    short: str = ""
    found: bool = False
    written: bool = True
    note: str | None = None


async def _answer(work: Work, memory: Memory, steps: Sequence[StepRecord], ended: Ended) -> _Told:
    found = await _passages(work, memory, steps)
    if not found and not memory.points:
        if ended.failure is not None and ended.stopped == "model":
            raise ended.failure.error or ModelDown(ended.failure.message)
        return _Told(reading.UNKNOWN if ended.failure is None else UNWRITTEN, (), [], written=ended.failure is None)
    shown = fitting(work.question, memory, found, work.spending)
    calls: list[ModelCall] = []
    asked = await _streamed(work, memory, shown)
    calls.append(asked.call)
    if asked.value is None and asked.failure is not None and asked.failure.stopped == "model":
        if asked.failure.too_long:
            shown = halved(shown)
        count = len(shown)
        again = await call(
            work.client,
            work.spending,
            "answer",
            prompts.answer(work.question, memory, shown),
            reading.SHAPE,
            lambda value: (value, reading.from_value(value, count)),
            retries=0,
        )
        answered = reading.from_value(again.value[0], count, again.call.cut) if again.value is not None else None
        asked = Called(again.call, answered, again.failure)
        calls.append(asked.call)
        if answered is not None:
            work.tell(Writing(answered.text))
    if asked.value is not None:
        answer = asked.value
        return _Told(answer.text, cited(answer, memory, shown), calls, answer.short, answer.found)
    assert asked.failure is not None
    if memory.points:
        text, citations = from_points(memory, found)
        note = f"the answer could not be written ({asked.failure.message}): these are the memory's points"
    elif asked.failure.error is not None:
        raise asked.failure.error
    else:
        text, citations = from_passages(found)
        note = f"the answer could not be written ({asked.failure.message})"
    work.tell(Writing(text))
    return _Told(text, citations, calls, written=False, note=note)


async def _passages(work: Work, memory: Memory, steps: Sequence[StepRecord]) -> tuple[FoundPassage, ...]:
    """The passages for the answer; unordered where the encoder cannot be had in time."""

    def gather(vector: Vector | None) -> tuple[FoundPassage, ...]:
        return answer_passages(work.snapshot, vector, memory, steps, work.settings)

    try:
        async with asyncio.timeout(work.spending.seconds_left(final=True)):
            found: tuple[FoundPassage, ...] = await work.in_thread(
                lambda: gather(work.encoder.encode_query(work.question))
            )
        return found
    except (EncoderServerDown, Reached, TimeoutError):
        return gather(None)


async def _streamed(work: Work, memory: Memory, passages: tuple[FoundPassage, ...]) -> Called[reading.Answer]:
    """Asks for the answer and shows it as it is written. One try."""
    messages = prompts.answer(work.question, memory, passages)
    spending, count = work.spending, len(passages)
    began, reply, shown = time.monotonic(), Reply(""), 0
    failure: Failure | None = None
    answer: reading.Answer | None = None
    requests = 0
    try:
        limit_s = spending.room(messages, final=True)
        spending.take(final=True)
        requests = 1
        async with asyncio.timeout(limit_s):
            stream = work.client.stream("answer", spoken(messages), reading.SHAPE, MAX_TOKENS["answer"])
            async with aclosing(stream) as replies:
                async for reply in replies:
                    if len(reply.text) >= shown + SHOWN_CHARS:
                        shown = len(reply.text)
                        if text := reading.so_far(reply.text, count):
                            work.tell(Writing(text))
        answer = reading.read_answer(reply.text, count, reply.cut)
        work.tell(Writing(answer.text))
    except Reached as reached:
        failure = Failure(reached.which, str(reached))
    except TimeoutError:
        failure = Failure("seconds", str(spending.late()))
    except ModelError as error:
        if isinstance(error, BadAnswer):
            work.client.told("answer", error.kind)
        failure = Failure("model", str(error), bool(getattr(error, "too_long", False)), error)
    seconds = time.monotonic() - began
    spending.waited += seconds
    tokens = _tokens(messages, reply) if reply.text else (0, 0)
    spending.prompt_tokens += tokens[0]
    spending.completion_tokens += tokens[1]
    made = ModelCall(
        "answer",
        messages,
        writable(reply.text) if failure is None else None,
        failure.message if failure is not None else None,
        requests,
        *tokens,
        round(seconds, 6),
        failure is None and reply.cut,
    )
    return Called(made, answer, failure)


def _tokens(messages: tuple[Message, ...], reply: Reply) -> tuple[int, int]:
    said = estimate([Message("assistant", reply.text)])
    return reply.prompt_tokens or estimate(messages), reply.completion_tokens or said
