"""The loop of iterative retrieval: one retrieval and one thought per step."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from memory.answering import qa_reader
from memory.answering.answer_form import DEFAULT_FORM, AnswerForm
from memory.answering.budget import Spending
from memory.answering.iterative.steps import (
    IterativeResult,
    IterativeStep,
    IterativeStopReason,
    RetrievalResult,
    Thought,
    retrieved_step,
)
from memory.answering.iterative.thoughts import THOUGHT_SCHEMA, read_thought, thought_prompt
from memory.llm.client import ChatMessage, ModelClient
from memory.llm.errors import ModelError
from memory.llm.json_answers import replace_surrogates
from memory.llm.token_estimates import reply_tokens
from memory.types import Hit

THOUGHT_TOKENS = 512


def answer_prompt(question: str, passages: Sequence[Hit], form: AnswerForm = DEFAULT_FORM) -> list[ChatMessage]:
    return qa_reader.reader_prompt(question, [(hit.title, hit.text) for hit in passages], form)


def next_query(step: IterativeStep, question: str, steps: Sequence[IterativeStep]) -> str | IterativeStopReason:
    """Returns the query that follows from the step's thought, or the reason to stop. `steps` are the earlier steps."""
    assert step.thought is not None
    if step.thought.answers:
        return "answered"
    asked = {question, *(each.query for each in [*steps, step])}
    return "nothing new" if step.thought.text in asked else step.thought.text


async def iterate(
    question: str,
    retrieve: Callable[[str], Awaitable[RetrievalResult]],
    client: ModelClient,
    steps: int,
    k: int,
    spending: Spending,
    on_step: Callable[[IterativeStep], None] = lambda _step: None,
) -> IterativeResult:
    """Runs at most `steps` retrievals, with a thought after each but the last.

    Stops early when a thought answers or a budget is reached. `retrieve` itself skips recognition memory if only the answer's
    call is left. If the model fails, or if `retrieve` raises ModelError after the first step, the steps end and the answer is
    made from the passages found so far. `on_step` is called with a step after its retrieval, and again after its thought.
    Raises ModelError if the first `retrieve` does, and any other error that `retrieve` raises.
    """
    steps_made: list[IterativeStep] = []
    query = question
    while True:
        began = time.perf_counter()
        try:
            found = await retrieve(query)
        except ModelError as error:
            if not steps_made:
                raise
            return IterativeResult(question, tuple(steps_made), "model", str(error))
        spending.charge(found.calls, found.prompt_tokens, found.completion_tokens)
        step = retrieved_step(steps_made, query, found, k)
        on_step(step)
        if step.number >= steps:
            return _result_with(question, steps_made, step, began, "steps")
        messages = thought_prompt(
            question, step.passages, [each.thought for each in steps_made if each.thought is not None]
        )
        fits = spending.has_tokens_for(messages, answer_prompt(question, step.passages[:1]))
        if (limit := spending.reached() or (None if fits else "tokens")) is not None:
            return _result_with(question, steps_made, step, began, limit)
        try:
            step = await _with_thought(step, messages, client, spending)
        except TimeoutError:
            return _result_with(question, steps_made, _charged(step, spending, 0, 0), began, "seconds")
        except ModelError as error:
            step = _charged(step, spending, error.prompt_tokens, error.completion_tokens)
            return _result_with(question, steps_made, replace(step, error=str(error)), began, "model")
        on_step(step)
        then = next_query(step, question, steps_made)
        if then in ("answered", "nothing new"):
            return _result_with(question, steps_made, step, began, then)
        steps_made.append(replace(step, seconds=time.perf_counter() - began))
        if (limit := spending.reached(0)) is not None:
            return IterativeResult(question, tuple(steps_made), limit)
        query = then


def _result_with(
    question: str, steps_made: Sequence[IterativeStep], last: IterativeStep, began: float, why: Any
) -> IterativeResult:
    steps = (*steps_made, replace(last, seconds=time.perf_counter() - began))
    return IterativeResult(question, steps, why, last.error)


async def _with_thought(
    step: IterativeStep, messages: Sequence[ChatMessage], client: ModelClient, spending: Spending
) -> IterativeStep:
    """Returns the step with its thought. Raises ModelError or TimeoutError after one try, without waiting for a retry."""

    def read(value: object) -> tuple[Thought, str]:
        return read_thought(value, step.passages), replace_surrogates(json.dumps(value, ensure_ascii=False))

    async with asyncio.timeout(spending.seconds_left(final=False)):
        (thought, text), reply = await client.ask(
            "thought", messages, THOUGHT_SCHEMA, read, retries=0, max_tokens=THOUGHT_TOKENS
        )
    return replace(_charged(step, spending, *reply_tokens(messages, reply)), thought=thought, reply=text)


def _charged(step: IterativeStep, spending: Spending, prompt_tokens: int, completion_tokens: int) -> IterativeStep:
    """Counts one more call in the step and in `spending`, and returns the step."""
    spending.charge(1, prompt_tokens, completion_tokens)
    return replace(
        step,
        calls=step.calls + 1,
        prompt_tokens=step.prompt_tokens + prompt_tokens,
        completion_tokens=step.completion_tokens + completion_tokens,
    )
