"""Data classes of the steps of iterative retrieval, and the merging of passages from several queries.

Passages of all steps are merged by their best score. A score is a share of its query's best score, because scores of different
queries have no common scale.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from memory.types import Hit

IterativeStopReason = Literal["answered", "steps", "nothing new", "calls", "tokens", "seconds", "model"]
"""Reason for the end of the steps: a thought answers; all steps were made; a thought repeats an earlier query; a budget was
reached (three kinds); a model call failed."""


@dataclass(frozen=True, slots=True)
class Thought:
    """One sentence towards the answer, and the ids of the passages that support it."""

    text: str
    answers: bool
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """The hits of one query, best first.

    `calls` and the tokens are the cost of the query's model calls. `remembered` are the (prompt, completion) tokens of cached
    replies, which an earlier equal query paid for.
    """

    hits: tuple[Hit, ...]
    note: str | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    remembered: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class IterativeStep:
    """One step: the query, its hits, all hits so far (at most k, best first), and the thought about them.

    Scores in `found` and `passages` are shares of their query's best score. `reply` is the model's answer, "" if it was not
    asked. The last step may have no `thought`; if the model failed, `error` gives the reason.
    """

    number: int
    query: str
    found: tuple[Hit, ...]
    new: tuple[str, ...]
    """Ids of the hits that no earlier step had found."""
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
    """All steps, and why they ended. The answer is written from `passages`."""

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
    """Returns the passages with scores as shares of the best score. If no score is above 0, all become 1."""
    best = max((hit.score for hit in hits), default=0.0)
    return tuple(replace(hit, score=max(hit.score, 0.0) / best if best > 0 else 1.0) for hit in hits)


def merge_hits(before: Sequence[Hit], found: Sequence[Hit], k: int) -> tuple[Hit, ...]:
    """Returns the `k` best of both, each passage with its best score; among equal scores, passages found earlier come first."""
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
    """Returns the next step, without its thought."""
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
