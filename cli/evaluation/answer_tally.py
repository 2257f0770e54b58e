"""What one mode answers, over all questions: exact match, F1, verdicts on claims, abstaining, what it took."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from cli.errors import CommandError
from cli.evaluation.answer_scores import exact, f1
from cli.evaluation.judging import Judge, JudgeTally
from cli.evaluation.questions import EvalQuestion
from cli.evaluation.scoring import mean_cost, percentiles
from daemon.contract.answering.ask import AskResponse
from daemon.contract.choices import Answerer
from daemon.contract.evaluation import AnswerScores, ClaimScores, ModelCost, QuestionScore


@dataclass
class AnswerTally:
    """A question that the daemon cannot answer (the model fails) counts as 0, and is listed with the reason."""

    answerer: Answerer | None = None
    asked: list[EvalQuestion] = field(default_factory=list)
    scores: list[QuestionScore] = field(default_factory=list)
    costs: list[tuple[int, int, int]] = field(default_factory=list)
    failure: CommandError | None = None
    judge: JudgeTally = field(default_factory=JudgeTally)

    def add(self, question: EvalQuestion, answer: AskResponse, judge: Judge | None = None) -> None:
        self.answerer = answer.answerer
        self.asked.append(question)
        remembered = answer.remembered
        self.costs.append(
            (
                answer.calls + (remembered.calls if remembered else 0),
                answer.tokens.prompt + (remembered.tokens.prompt if remembered else 0),
                answer.tokens.completion + (remembered.tokens.completion if remembered else 0),
            )
        )
        self.scores.append(
            QuestionScore(
                question=question.text,
                short=answer.short,
                **_compared(question, answer.short),
                found=answer.found,
                answer=answer.answer if judge is not None else None,
                judged=self._judged(question, answer.answer, judge),
                prompt_tokens=answer.tokens.prompt,
                completion_tokens=answer.tokens.completion,
                calls=answer.calls,
                took_ms=answer.took_ms,
                entities_a_point=answer.entities_a_point,
                note=answer.note,
            )
        )

    def add_failure(self, question: EvalQuestion, error: CommandError, judge: Judge | None = None) -> None:
        self.asked.append(question)
        self.failure = error
        self._judged(question, None, judge)
        self.scores.append(
            QuestionScore(
                question=question.text, short="", **_compared(question, None), found=False, error=error.message
            )
        )

    def _judged(self, question: EvalQuestion, answer: str | None, judge: Judge | None) -> dict[str, float]:
        if judge is None or question.holds is not None:
            return {}
        return self.judge.score(question, answer, judge)

    def values(self) -> dict[str, list[float]]:
        """Each question's value, by measure."""
        whole = {
            "em": [score.em for score in self.scores if score.em is not None],
            "f1": [score.f1 for score in self.scores if score.f1 is not None],
            "accuracy": [float(score.correct) for score in self.scores if score.correct is not None],
        }
        return {measure: values for measure, values in whole.items() if values} | self.judge.values()

    def cost(self) -> ModelCost:
        return mean_cost(self.costs)

    def result(self) -> AnswerScores:
        """Raises the last failure where no question was answered."""
        if self.answerer is None:
            raise self.failure or CommandError("no question was asked.")
        answered = [score for score in self.scores if score.error is None]
        points = [score.entities_a_point for score in answered if score.entities_a_point is not None]
        values = self.values()
        return AnswerScores(
            n=len(self.scores),
            em=round(fmean(values["em"]), 4) if "em" in values else None,
            f1=round(fmean(values["f1"]), 4) if "f1" in values else None,
            claims=self._claims(),
            judge=self.judge.result(),
            abstained=sum(not score.found for score in answered),
            prompt_tokens=sum(score.prompt_tokens for score in answered),
            completion_tokens=sum(score.completion_tokens for score in answered),
            answerer=self.answerer,
            failed=len(self.scores) - len(answered),
            calls=round(fmean(score.calls for score in answered), 4),
            took_ms=percentiles([score.took_ms for score in answered]),
            entities_a_point=round(fmean(points), 4) if points else None,
            questions=self.scores,
        )

    def _claims(self) -> ClaimScores | None:
        judged = [(question, bool(score.correct)) for question, score in self._scored() if score.correct is not None]
        if not judged:
            return None
        pairs: dict[int | str, list[bool]] = {}
        for question, correct in judged:
            if question.pair is not None:
                pairs.setdefault(question.pair, []).append(correct)
        return ClaimScores(
            n=len(judged),
            accuracy=round(fmean(correct for _, correct in judged), 4),
            pairs=len(pairs) or None,
            pair_accuracy=round(fmean(all(both) for both in pairs.values()), 4) if pairs else None,
        )

    def _scored(self) -> Sequence[tuple[EvalQuestion, QuestionScore]]:
        return list(zip(self.asked, self.scores, strict=True))


def _compared(question: EvalQuestion, short: str | None) -> dict[str, Any]:
    """The scores of a short answer, None where there is none; none at all where no answer is known."""
    if question.holds is not None:
        return {"correct": short == ("true" if question.holds else "false")}
    if not question.answers:
        return {}
    if short is None:
        return {"em": 0.0, "f1": 0.0}
    return {"em": exact(short, question.answers), "f1": round(f1(short, question.answers), 6)}
