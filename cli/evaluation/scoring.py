"""What one mode retrieves, over all questions: recall, times, what recognition memory did and cost."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, quantiles
from typing import Any, Protocol

from cli.evaluation.gold import FoundPassage
from cli.evaluation.questions import EvalQuestion
from daemon.contract.evaluation import FilterStatistics, ModelCost, Percentiles
from daemon.contract.query import QueryResponse


class Question(Protocol):
    """`gold` passages or documents answer it; `found` counts those that are among some passages."""

    @property
    def gold(self) -> int: ...
    def found(self, ranked: Sequence[Any]) -> int: ...


def recalls_at(ks: Sequence[int], question: Question, ranked: Sequence[Any]) -> list[float]:
    """For each k, the share of the question's gold among the first k of the passages."""
    return [question.found(ranked[:k]) / question.gold for k in ks]


@dataclass
class RetrievalTally:
    """What one mode has found so far, of the questions whose gold is known."""

    mode: str | None
    ks: Sequence[int]
    recalls: dict[int, list[float]] = field(default_factory=dict)
    """By k: each question's share of gold among the first k."""
    times: list[float] = field(default_factory=list)
    """Milliseconds of each query that was made for itself."""
    linked: list[tuple[int, int]] = field(default_factory=list)
    """How many triples each query was linked to, and how many recognition memory kept."""
    unfiltered: int = 0
    costs: list[tuple[int, int, int]] = field(default_factory=list)
    """Each query's calls to the model, prompt tokens and completion tokens."""

    def add_query(self, question: EvalQuestion, answer: QueryResponse) -> None:
        self.mode = answer.mode
        self.times.append(answer.took_ms)
        if answer.note is not None and answer.note.startswith("unfiltered"):
            self.unfiltered += 1
        elif answer.triples:
            self.linked.append((len(answer.triples), sum(triple.kept for triple in answer.triples)))
        cost = answer.cost
        self.costs.append((cost.calls, cost.tokens.prompt, cost.tokens.completion) if cost is not None else (0, 0, 0))
        self.add_passages(question, answer.passages)

    def add_passages(self, question: EvalQuestion, passages: Sequence[FoundPassage]) -> None:
        """Counts what was found, without a query for itself."""
        if question.gold:
            for k, share in zip(self.ks, recalls_at(self.ks, question, passages), strict=True):
                self.recalls.setdefault(k, []).append(share)

    def recall(self) -> dict[str, float]:
        return {str(k): round(fmean(shares), 4) for k, shares in self.recalls.items()}

    def all(self) -> dict[str, float]:
        return {str(k): round(fmean(share == 1 for share in shares), 4) for k, shares in self.recalls.items()}

    @property
    def gold(self) -> int:
        """Questions whose gold is known."""
        return len(next(iter(self.recalls.values()), []))

    def values(self) -> dict[str, list[float]]:
        """Each question's value, by measure."""
        return {f"recall@{k}": shares for k, shares in self.recalls.items()}

    def cost(self) -> ModelCost | None:
        """None where no query asked the model."""
        return mean_cost(self.costs) if any(calls for calls, _, _ in self.costs) else None

    def filter(self) -> FilterStatistics | None:
        """None where the filter removed no triple and never failed."""
        offered, kept = (sum(part) for part in zip(*self.linked, strict=True)) if self.linked else (0, 0)
        if offered == kept and not self.unfiltered:
            return None
        emptied = sum(not left for _, left in self.linked)
        share = round(kept / offered, 4) if offered else 0.0
        return FilterStatistics(queries=len(self.linked), kept=share, emptied=emptied, unfiltered=self.unfiltered)


def mean_cost(costs: Sequence[tuple[int, int, int]]) -> ModelCost:
    calls, prompt, completion = (round(fmean(part), 4) for part in zip(*costs, strict=True))
    return ModelCost(calls=calls, prompt_tokens=prompt, completion_tokens=completion)


def percentiles(times: Sequence[float]) -> Percentiles:
    """p50 and p95 by linear interpolation between the nearest two."""
    cuts = quantiles(times, n=20, method="inclusive") if len(times) > 1 else [times[0]] * 19
    return Percentiles(p50=round(cuts[9], 3), p95=round(cuts[18], 3))
