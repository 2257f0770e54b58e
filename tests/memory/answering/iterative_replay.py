"""Repeats a step of iterative retrieval from its record."""

from collections.abc import Sequence
from dataclasses import replace

from memory.answering.iterative import IterativeStep, RetrievalResult, read_thought, retrieved_step
from memory.llm.json_answers import parse


def replay_iterative_step(record: IterativeStep, before: Sequence[IterativeStep], k: int) -> IterativeStep:
    """Compute the step again from the recorded hits and reply of the model; the result equals the record."""
    found = RetrievalResult((*record.found, *record.deeper), record.note)
    step = retrieved_step(before, record.query, found, k)
    spent = replace(
        step,
        reply=record.reply,
        error=record.error,
        calls=record.calls,
        prompt_tokens=record.prompt_tokens,
        completion_tokens=record.completion_tokens,
        seconds=record.seconds,
    )
    if not record.reply or record.error is not None:
        return spent
    return replace(spent, thought=read_thought(parse(record.reply).value, step.passages))
