"""Answers judged by a model: scores each answer, and compares it with the first row's answer in both orders."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean

from cli.errors import CommandError, Exit
from cli.evaluation.questions import EvalQuestion
from daemon.contract.evaluation import Criterion, JudgedComparison, JudgeResponse, JudgeScores

Judge = Callable[[EvalQuestion, Criterion, str, str | None], JudgeResponse]
"""Judges one answer by a criterion, or compares it with a second answer."""
QUALITIES = (Criterion.COMPREHENSIVENESS, Criterion.DIVERSITY)


@dataclass
class JudgeTally:
    """Scores of one row's answers, by criterion: 0 to 100, for correctness 0 or 1. A missing answer scores 0."""

    scores: dict[Criterion, list[float]] = field(default_factory=dict)
    failed: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def score(self, question: EvalQuestion, answer: str | None, judge: Judge) -> dict[str, float]:
        """Returns the scores of one answer by criterion; all 0 if the answer is None."""
        found = {}
        criteria = [*QUALITIES, *([Criterion.CORRECTNESS] if question.answers else [])]
        for criterion in criteria:
            value = 0.0 if answer is None else self._score(question, criterion, answer, judge)
            self.scores.setdefault(criterion, []).append(value)
            found[criterion.value] = value
        return found

    def _score(self, question: EvalQuestion, criterion: Criterion, answer: str, judge: Judge) -> float:
        response = judgement_of(judge, question, criterion, answer)
        if response is None:
            self.failed += 1
            return 0.0
        self.calls += 1
        self.prompt_tokens += response.tokens.prompt
        self.completion_tokens += response.tokens.completion
        return float(bool(response.correct)) if criterion is Criterion.CORRECTNESS else response.score or 0.0

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
    """Comparisons of one row's answers with the first row's answers. A question is omitted if an answer is missing or the judge
    fails."""

    points: dict[Criterion, list[float]] = field(default_factory=dict)
    """Points of each question, from 0 to 2: 1 for each order in which the row's answer was better, 1/2 for a tie."""

    def compare(self, question: EvalQuestion, answer: str, of_baseline: str, judge: Judge) -> None:
        for criterion in QUALITIES:
            first = judgement_of(judge, question, criterion, answer, of_baseline)
            second = judgement_of(judge, question, criterion, of_baseline, answer)
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


def judgement_of(
    judge: Judge, question: EvalQuestion, criterion: Criterion, answer: str, other: str | None = None
) -> JudgeResponse | None:
    """Returns the judgement, or None if the judge's model fails for this answer."""
    try:
        return judge(question, criterion, answer, other)
    except CommandError as error:
        if error.code is not Exit.FAILED or error.problem is None:
            raise
        return None
