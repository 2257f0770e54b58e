"""Answers judged by a model: scored one by one, and compared with those of the first mode in both orders."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean

from cli.errors import CommandError, Exit
from cli.evaluation.questions import EvalQuestion
from daemon.contract.answering.judge import Criterion, JudgeResponse
from daemon.contract.evaluation import JudgedComparison, JudgeScores

Judge = Callable[[EvalQuestion, Criterion, str, str | None], JudgeResponse]
"""Judges an answer by a criterion, or two against each other."""
QUALITIES = (Criterion.COMPREHENSIVENESS, Criterion.DIVERSITY)


@dataclass
class JudgeTally:
    """The scores of one mode's answers, by criterion: 0 to 100, of correctness 0 or 1. An answer that is not there has 0."""

    scores: dict[Criterion, list[float]] = field(default_factory=dict)
    failed: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def score(self, question: EvalQuestion, answer: str | None, judge: Judge) -> dict[str, float]:
        """The scores of one answer by criterion; None is a question without an answer."""
        found = {}
        criteria = [*QUALITIES, *([Criterion.CORRECTNESS] if question.answers else [])]
        for criterion in criteria:
            value = 0.0 if answer is None else self._score(question, criterion, answer, judge)
            self.scores.setdefault(criterion, []).append(value)
            found[criterion.value] = value
        return found

    def _score(self, question: EvalQuestion, criterion: Criterion, answer: str, judge: Judge) -> float:
        said = asked(judge, question, criterion, answer)
        if said is None:
            self.failed += 1
            return 0.0
        self.calls += 1
        self.prompt_tokens += said.tokens.prompt
        self.completion_tokens += said.tokens.completion
        return float(bool(said.correct)) if criterion is Criterion.CORRECTNESS else said.score or 0.0

    def values(self) -> dict[str, list[float]]:
        names = {Criterion.CORRECTNESS: "judged accuracy"}
        return {names.get(criterion, criterion.value): values for criterion, values in self.scores.items()}

    def result(self) -> JudgeScores | None:
        if not self.scores:
            return None
        right = self.scores.get(Criterion.CORRECTNESS)
        return JudgeScores(
            n=len(self.scores[QUALITIES[0]]),
            comprehensiveness=round(fmean(self.scores[Criterion.COMPREHENSIVENESS]), 2),
            diversity=round(fmean(self.scores[Criterion.DIVERSITY]), 2),
            accuracy=round(fmean(right), 4) if right else None,
            failed=self.failed,
            calls=self.calls,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
        )


@dataclass
class PairTally:
    """One mode's answers against those of the first. A question on which one of them has no answer, or the judge fails, is left
    out."""

    points: dict[Criterion, list[float]] = field(default_factory=dict)
    """Of each question, from 0 to 2: 1 for each order in which the mode's answer was better, 1/2 for a tie."""

    def compare(self, question: EvalQuestion, answer: str, of_baseline: str, judge: Judge) -> None:
        for criterion in QUALITIES:
            first = asked(judge, question, criterion, answer, of_baseline)
            second = asked(judge, question, criterion, of_baseline, answer)
            if first is not None and second is not None:
                won = _points(first.better, 1) + _points(second.better, 2)
                self.points.setdefault(criterion, []).append(won)

    def result(self, mode: str, baseline: str) -> list[JudgedComparison]:
        return [
            JudgedComparison(
                criterion=criterion.value,
                mode=mode,
                baseline=baseline,
                n=len(points),
                wins=sum(won > 1 for won in points),
                ties=sum(won == 1 for won in points),
                losses=sum(won < 1 for won in points),
                win_rate=round(fmean(points) / 2, 4),
            )
            for criterion, points in self.points.items()
        ]


def _points(better: int | None, place: int) -> float:
    return 0.5 if better == 0 else float(better == place)


def asked(
    judge: Judge, question: EvalQuestion, criterion: Criterion, answer: str, other: str | None = None
) -> JudgeResponse | None:
    """None where the judge's model fails for this answer."""
    try:
        return judge(question, criterion, answer, other)
    except CommandError as error:
        if error.code is not Exit.FAILED or error.problem is None:
            raise
        return None
