"""One call to the model within the budget: what it said, the record of it, or why there is nothing."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from memory.llm.answers import writable
from memory.llm.client import Message as Spoken
from memory.llm.client import ModelClient
from memory.llm.errors import ModelError
from memory.llm.formats import Shape
from memory.working.spending import Reached, Spending, estimate, wasted
from memory.working.types import Message, ModelCall, Purpose, Stopped

RETRIES = 1
"""How often trouble, or an answer of no use, is tried again in a deep question."""
MAX_TOKENS = {"judge": 1024, "evolve": 4096, "merge": 2048, "answer": 4096}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call came to nothing."""

    stopped: Stopped
    message: str
    too_long: bool = False
    error: ModelError | None = None


@dataclass(frozen=True, slots=True)
class Called(Generic[T]):
    """Either `value` or `failure` is set."""

    call: ModelCall
    value: T | None = None
    failure: Failure | None = None


async def call(
    client: ModelClient,
    spending: Spending,
    purpose: Purpose,
    messages: tuple[Message, ...],
    shape: Shape,
    read: Callable[[Any], T],
    retries: int = RETRIES,
) -> Called[T]:
    """Asks, with a time limit; never raises for what the model or the budget does."""
    final = purpose == "answer"
    began, asked_before = time.monotonic(), spending.requests

    def record(
        reply: str | None, error: str | None, prompt: int = 0, completion: int = 0, cut: bool = False
    ) -> ModelCall:
        seconds = time.monotonic() - began
        spending.waited += seconds
        spending.prompt_tokens += prompt
        spending.completion_tokens += completion
        asked = spending.requests - asked_before
        return ModelCall(purpose, messages, reply, error, asked, prompt, completion, round(seconds, 6), cut)

    try:
        limit_s = spending.room(messages, final)
    except Reached as reached:
        return Called(record(None, str(reached)), failure=Failure(reached.which, str(reached)))
    try:
        async with asyncio.timeout(limit_s):
            value, reply = await client.ask(
                purpose,
                spoken(messages),
                shape,
                read,
                retries=retries,
                max_tokens=MAX_TOKENS[purpose],
                before=lambda: spending.take(final),
            )
    # Answers of no use were paid for, and the client does not say how much: every try counts, but not one that hangs.
    except Reached as reached:
        spent = estimate(messages) * (spending.requests - asked_before)
        return Called(record(None, str(reached), spent), failure=Failure(reached.which, str(reached)))
    except TimeoutError:
        late, spent = spending.late(), estimate(messages) * max(spending.requests - asked_before - 1, 0)
        return Called(record(None, str(late), spent), failure=Failure(late.which, str(late)))
    except ModelError as error:
        lost = wasted(error, estimate(messages) * (spending.requests - asked_before), MAX_TOKENS[purpose])
        failure = Failure("model", str(error), bool(getattr(error, "too_long", False)), error)
        return Called(record(None, str(error), *lost), failure=failure)
    prompt = reply.prompt_tokens or estimate(messages)
    completion = reply.completion_tokens or estimate([Message("assistant", reply.text)])
    return Called(record(writable(reply.text), None, prompt, completion, reply.cut), value)


def spoken(messages: tuple[Message, ...]) -> list[Spoken]:
    return [{"role": message.role, "content": message.content} for message in messages]
