"""Measures of one question, and their averages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, quantiles
from typing import Any, Protocol

from cli.evaluation.answer_scores import exact, f1, keyword_f1
from cli.evaluation.gold import FoundPassage
from cli.evaluation.questions import EvalQuestion
from daemon.contract.evaluation import FilterStatistics, ModelCost, Percentiles
from daemon.contract.query import QueryResponse


class Question(Protocol):
    """A question with `gold` passages or documents; `found` counts those that are among some passages."""

    @property
    def gold(self) -> int: ...
    def found(self, ranked: Sequence[Any]) -> int: ...


def recalls_at(ks: Sequence[int], question: Question, ranked: Sequence[Any]) -> list[float]:
    """Returns, for each k, the share of the question's gold among the first k passages."""
    return [question.found(ranked[:k]) / question.gold for k in ks]


def recall_by_k(ks: Sequence[int], question: Question, found: Sequence[Any]) -> dict[str, float]:
    return {str(k): round(share, 6) for k, share in zip(ks, recalls_at(ks, question, found), strict=True)}


def documents_of(found: Sequence[FoundPassage], k: int) -> list[str]:
    """Returns the documents of the first k passages, each once."""
    return list(dict.fromkeys(passage.document for passage in found[:k]))


def compared(question: EvalQuestion, short: str | None) -> dict[str, Any]:
    """Returns the scores of a short answer: 0 without an answer, no scores if no answer is known."""
    if question.holds is not None:
        return {"correct": short == ("true" if question.holds else "false")}
    if not question.answers:
        return {}
    said = short or ""
    scores: dict[str, Any] = {"em": 0.0, "f1": 0.0}
    if short is not None:
        scores = {"em": exact(said, question.answers), "f1": round(f1(said, question.answers), 6)}
    if question.keywords:
        scores["keyword_f1"] = round(keyword_f1(said, question.answers, question.keywords), 6)
    return scores


def mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), 4) if known else None


def means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Returns, by key, the mean over the rows that have it."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: round(fmean(row[key] for row in rows if key in row), 4) for key in keys}


@dataclass
class FilterTally:
    """Effects of recognition memory on the queries so far."""

    linked: list[tuple[int, int]] = field(default_factory=list)
    """For each query, the number of linked triples, and how many of them recognition memory kept."""
    unfiltered: int = 0

    def add(self, answer: QueryResponse) -> None:
        if answer.note is not None and answer.note.startswith("unfiltered"):
            self.unfiltered += 1
        elif answer.triples:
            self.linked.append((len(answer.triples), sum(triple.kept for triple in answer.triples)))

    def result(self) -> FilterStatistics | None:
        """Returns the statistics; None if the filter removed no triple and never failed."""
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
    """Returns p50 and p95 by linear interpolation between the nearest two values."""
    cuts = quantiles(times, n=20, method="inclusive") if len(times) > 1 else [times[0]] * 19
    return Percentiles(p50=round(cuts[9], 3), p95=round(cuts[18], 3))
