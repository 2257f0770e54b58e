"""Steps of iterative retrieval as plain data, and how the passages of several queries are merged.

Passages of all steps are merged by their best score. A score is taken as a share of the best one of its query, since scores of
different queries have no common scale.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from memory.types import Hit

IterativeStopReason = Literal["answered", "steps", "nothing new", "calls", "tokens", "seconds", "model"]
"""Why no further step was made: a thought answers; all steps were made; a thought repeats an earlier query; a budget was
reached (three kinds); a model call failed."""


@dataclass(frozen=True, slots=True)
class Thought:
    """One sentence towards the answer, and the ids of the passages that it rests on."""

    text: str
    answers: bool
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """What one query found, best first. `calls` and tokens are those of the models that the query asked;
    `remembered`, (prompt, completion) each, those of their answers that an equal query had paid for."""

    hits: tuple[Hit, ...]
    note: str | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    remembered: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class IterativeStep:
    """One step: the query, what it found, all that was found so far (at most k, best first), and the thought over it.

    Scores in `found` and `passages` are shares of the best one of their query. `reply` is the model's answer, "" where it was
    not asked. The last step may have no `thought`; `error` says why, where the model failed.
    """

    number: int
    query: str
    found: tuple[Hit, ...]
    new: tuple[str, ...]
    """Ids of found passages that no earlier step had found."""
    passages: tuple[Hit, ...]
    thought: Thought | None = None
    note: str | None = None
    reply: str = ""
    error: str | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    deeper: tuple[Hit, ...] = ()
    """What the query found beyond the first k, if it was asked for more. Neither thought nor answer reads it."""


@dataclass(frozen=True, slots=True)
class IterativeResult:
    """All steps, and why there are no more. `passages` are what the answer is to be read from."""

    question: str
    steps: tuple[IterativeStep, ...]
    stopped: IterativeStopReason
    error: str | None = None

    @property
    def passages(self) -> tuple[Hit, ...]:
        return self.steps[-1].passages if self.steps else ()

    @property
    def thoughts(self) -> tuple[Thought, ...]:
        return tuple(step.thought for step in self.steps if step.thought is not None)


def scale_scores(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The same passages with scores from 0 to 1: shares of the best one. Where none is above 0 all are equally good."""
    best = max((hit.score for hit in hits), default=0.0)
    return tuple(replace(hit, score=max(hit.score, 0.0) / best if best > 0 else 1.0) for hit in hits)


def merge_hits(before: Sequence[Hit], found: Sequence[Hit], k: int) -> tuple[Hit, ...]:
    """The `k` best of both, each passage with its best score; among equals what was found earlier comes first."""
    best: dict[str, tuple[float, int, Hit]] = {}
    for order, hit in enumerate([*before, *found]):
        known = best.get(hit.id)
        if known is None:
            best[hit.id] = (hit.score, order, hit)
        elif hit.score > known[0]:
            best[hit.id] = (hit.score, known[1], hit)
    ranked = sorted(best.values(), key=lambda each: (-each[0], each[1]))
    return tuple(hit for _, _, hit in ranked[:k])


def retrieved_step(steps: Sequence[IterativeStep], query: str, found: RetrievalResult, k: int) -> IterativeStep:
    """The next step, up to its thought."""
    hits = scale_scores(found.hits)
    known = {hit.id for step in steps for hit in step.found}
    return IterativeStep(
        number=len(steps) + 1,
        query=query,
        found=hits[:k],
        new=tuple(hit.id for hit in hits[:k] if hit.id not in known),
        passages=merge_hits([hit for step in steps for hit in step.found], hits[:k], k),
        deeper=hits[k:],
        note=found.note,
        calls=found.calls,
        prompt_tokens=found.prompt_tokens,
        completion_tokens=found.completion_tokens,
    )
