"""The context of a deep question, and its model calls.

A call stays within the budget. Its result contains its record, and its value or the reason for its failure.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from memory.answering.answer_form import DEFAULT_FORM, AnswerForm
from memory.answering.budget import BudgetReached, Spending
from memory.answering.working_memory.trace import DeepEvent, DeepSettings, DeepStopReason, ModelCall, Purpose
from memory.llm.chat_completion import prompt_tokens, reply_tokens
from memory.llm.client import ChatMessage, ModelClient
from memory.llm.errors import ModelError
from memory.llm.json_answers import replace_surrogates
from memory.llm.response_format import JsonSchema
from memory.types import Encoder
from store.snapshot import Snapshot

DEEP_CALL_RETRIES = 1
"""Number of retries after a failure or an unusable answer in a deep question."""
STEP_MAX_TOKENS = {"judge": 1024, "subquery": 256, "evolve": 4096, "merge": 2048}
"""Maximum number of completion tokens of a step's calls, by purpose. The limit for the answer depends on its form."""
T = TypeVar("T")

RunInThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a processor-bound function outside the event loop, such as `asyncio.to_thread`."""


@dataclass(frozen=True, slots=True)
class DeepContext:
    """`on_event` is called on the event loop and returns immediately."""

    question: str
    snapshot: Snapshot
    encoder: Encoder
    client: ModelClient
    settings: DeepSettings
    spending: Spending
    on_event: Callable[[DeepEvent], None]
    in_thread: RunInThread
    form: AnswerForm = DEFAULT_FORM
    shown_passages: list[int] = field(default_factory=list)
    """Number of passages in the prompt after each refusal of a longer prompt. Later steps start with the smallest number."""


@dataclass(frozen=True, slots=True)
class CallFailure:
    stopped: DeepStopReason
    message: str
    too_long: bool = False
    error: ModelError | None = None


def failure_of(error: ModelError) -> CallFailure:
    return CallFailure("model", str(error), bool(getattr(error, "too_long", False)), error)


@dataclass(frozen=True, slots=True)
class CallResult(Generic[T]):
    """The result of a call; either `value` or `failure` is set."""

    call: ModelCall
    value: T | None = None
    failure: CallFailure | None = None


async def call_model(
    client: ModelClient,
    spending: Spending,
    purpose: Purpose,
    messages: tuple[ChatMessage, ...],
    schema: JsonSchema,
    read: Callable[[object], T],
    max_tokens: int | None = None,
    retries: int = DEEP_CALL_RETRIES,
    final: bool = False,
) -> CallResult[T]:
    """Calls the model within the budget and its time limit. Returns failures of the model, and a reached budget, as the
    result's `failure`.

    `max_tokens`: by default the limit of the purpose. `final`: the call may use the budget reserved for the answer.
    """
    began, asked_before = time.monotonic(), spending.calls

    def record(
        reply: str | None, error: str | None, prompt: int = 0, completion: int = 0, cut: bool = False
    ) -> ModelCall:
        seconds = time.monotonic() - began
        spending.model_seconds += seconds
        spending.charge(0, prompt, completion)
        calls = spending.calls - asked_before
        return ModelCall(purpose, messages, reply, error, calls, prompt, completion, round(seconds, 6), cut)

    try:
        limit_s = spending.require_call(messages, final)
    except BudgetReached as reached:
        return CallResult(record(None, str(reached)), failure=CallFailure(reached.limit, str(reached)))
    try:
        async with asyncio.timeout(limit_s):
            value, reply = await client.ask(
                purpose,
                messages,
                schema,
                read,
                retries=retries,
                max_tokens=max_tokens or STEP_MAX_TOKENS[purpose],
                before_try=lambda: spending.take_request(final),
            )
    # The client does not report the tokens of unusable answers. Each try is charged with its prompt, except one that timed out.
    except BudgetReached as reached:
        spent = prompt_tokens(messages) * (spending.calls - asked_before)
        return CallResult(record(None, str(reached), spent), failure=CallFailure(reached.limit, str(reached)))
    except TimeoutError:
        time_over, spent = spending.out_of_time(), prompt_tokens(messages) * max(spending.calls - asked_before - 1, 0)
        return CallResult(record(None, str(time_over), spent), failure=CallFailure(time_over.limit, str(time_over)))
    except ModelError as error:
        failed = record(None, str(error), error.prompt_tokens, error.completion_tokens)
        return CallResult(failed, failure=failure_of(error))
    tokens = reply_tokens(messages, reply)
    return CallResult(record(replace_surrogates(reply.text), None, *tokens, reply.cut), value)
