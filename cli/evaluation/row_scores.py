"""Scores of one row by question, and their means. Deep answers are also scored after each step, as in the paper of HGMem."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from cli.errors import CommandError
from cli.evaluation.gold import FoundPassage
from cli.evaluation.judging import Judge, JudgeTally
from cli.evaluation.questions import EvalQuestion
from cli.evaluation.rows import Row
from cli.evaluation.scoring import (
    FilterTally,
    compared,
    documents_of,
    mean,
    mean_cost,
    means,
    percentiles,
    recall_by_k,
)
from daemon.contract.answering.ask import AskResponse, RetrievedPassage
from daemon.contract.choices import Answerer
from daemon.contract.evaluation import (
    AnswerScores,
    ClaimScores,
    EvalResponse,
    ModelCost,
    QuestionScore,
    StepScores,
)
from daemon.contract.query import QueryResponse


def step_scores(ks: Sequence[int], question: EvalQuestion, answer: AskResponse) -> list[StepScores]:
    """Returns the scores after each step. The last step's answer is the final answer."""
    found, calls = [], 0
    for at, step in enumerate(answer.steps):
        calls += sum(
            map(_requests, [step.get("judged"), *step.get("worded", ()), step.get("evolved"), step.get("merged")])
        )
        is_last = at == len(answer.steps) - 1
        written: dict[str, Any] = step.get("answer") or {}
        if is_last:
            short, passages, own = answer.short, answer.passages, answer.answered or []
        else:
            short = written.get("short", "")
            passages = [RetrievedPassage.model_validate(each) for each in written.get("passages", ())]
            own = written.get("calls", [])
        scores = compared(question, short)
        found.append(
            StepScores(
                step=step.get("number", at),
                em=scores.get("em"),
                f1=scores.get("f1"),
                accuracy=float(scores["correct"]) if "correct" in scores else None,
                recall=recall_by_k(ks, question, passages) if question.gold else {},
                calls=calls + sum(map(_requests, own)),
            )
        )
    return found


def mean_steps(questions: Sequence[Sequence[StepScores]]) -> list[StepScores]:
    """Returns means over the questions for each step. A question with fewer steps counts with its last step."""
    found = []
    for at in range(max(map(len, questions), default=0)):
        steps = [each[min(at, len(each) - 1)] for each in questions]
        found.append(
            StepScores(
                step=max(step.step for step in steps),
                em=mean([step.em for step in steps]),
                f1=mean([step.f1 for step in steps]),
                accuracy=mean([step.accuracy for step in steps]),
                recall=means([step.recall for step in steps if step.recall]),
                calls=round(fmean(step.calls for step in steps), 4),
            )
        )
    return found


def _requests(call: dict[str, Any] | None) -> int:
    return int(call.get("requests", 0)) if call else 0


@dataclass
class RowScores:
    """Collects the scores of a row. A question scores 0 if the model fails; the reason is kept."""

    row: Row
    ks: Sequence[int]
    mode: str | None = None
    """The mode that the daemon used; None before its first answer."""
    asked: list[EvalQuestion] = field(default_factory=list)
    scores: list[QuestionScore] = field(default_factory=list)
    answered: list[tuple[EvalQuestion, QuestionScore]] = field(default_factory=list)
    """(question, score) of each question that the row answers."""
    answerer: Answerer | None = None
    times: list[float] = field(default_factory=list)
    """Milliseconds of each query that measured retrieval alone."""
    filter: FilterTally = field(default_factory=FilterTally)
    query_costs: list[tuple[int, int, int]] = field(default_factory=list)
    """(calls to the model, prompt tokens, completion tokens) of each query."""
    answer_costs: list[tuple[int, int, int]] = field(default_factory=list)
    judge: JudgeTally = field(default_factory=JudgeTally)
    failure: CommandError | None = None

    def add(
        self,
        question: EvalQuestion,
        query: QueryResponse | None,
        answer: AskResponse | CommandError | None,
        judge: Judge | None,
    ) -> None:
        """Scores one question. `query` is None if the row has no separate retrieval; `answer` is None if the row does not
        answer."""
        score: dict[str, Any] = {"id": question.id, "question": question.text, "absent": list(question.absent)}
        found: Sequence[FoundPassage] | None = None
        if query is not None:
            self._add_query(query)
            calls, prompt, completion = self.query_costs[-1]
            score |= {"calls": calls, "prompt_tokens": prompt, "completion_tokens": completion}
            score |= {"took_ms": query.took_ms, "note": query.note}
            found = query.passages
        elif answer is not None and self.row.answerer in (Answerer.ITERATIVE, Answerer.DEEP):
            found = answer.passages if isinstance(answer, AskResponse) else ()
        if found is not None and question.gold:
            score |= {"recall": recall_by_k(self.ks, question, found), "retrieved": documents_of(found, max(self.ks))}
        if answer is not None:
            score |= self._answered(question, answer, judge)
        scored = QuestionScore(**score)
        self.asked.append(question)
        self.scores.append(scored)
        if answer is not None:
            self.answered.append((question, scored))

    def _add_query(self, query: QueryResponse) -> None:
        self.mode = query.mode
        self.times.append(query.took_ms)
        self.filter.add(query)
        cost = query.cost
        self.query_costs.append(
            (cost.calls, cost.tokens.prompt, cost.tokens.completion) if cost is not None else (0, 0, 0)
        )

    def _answered(
        self, question: EvalQuestion, answer: AskResponse | CommandError, judge: Judge | None
    ) -> dict[str, Any]:
        if isinstance(answer, CommandError):
            self.failure = answer
            judged = self._judged(question, None, judge)
            failed = {"found": False, "error": answer.message, "judged": judged, "calls": 0, "took_ms": 0.0}
            return failed | {"prompt_tokens": 0, "completion_tokens": 0} | compared(question, None)
        self.answerer = answer.answerer
        paid = answer.remembered
        self.answer_costs.append(
            (
                answer.calls + (paid.calls if paid else 0),
                answer.tokens.prompt + (paid.tokens.prompt if paid else 0),
                answer.tokens.completion + (paid.tokens.completion if paid else 0),
            )
        )
        return {
            "short": answer.short,
            **compared(question, answer.short),
            "found": answer.found,
            "answer": answer.answer,
            "judged": self._judged(question, answer.answer, judge),
            "prompt_tokens": answer.tokens.prompt,
            "completion_tokens": answer.tokens.completion,
            "calls": answer.calls,
            "took_ms": answer.took_ms,
            "entities_a_point": answer.entities_a_point,
            "steps": step_scores(self.ks, question, answer) if self.row.answering.get("each_step") else [],
            "note": answer.note,
        }

    def _judged(self, question: EvalQuestion, answer: str | None, judge: Judge | None) -> dict[str, float]:
        if judge is None or question.holds is not None:
            return {}
        return self.judge.score(question, answer, judge)

    def result(self) -> EvalResponse:
        """Returns the row's result. Raises the last failure if questions were asked and none was answered."""
        n, gold = len(self.asked), sum(each.gold > 0 for each in self.asked)
        recalls = [score.recall for score in self.scores if score.recall]
        answers = self._answers() if self.answered else None
        times = self.times or [score.took_ms for _, score in self.answered if score.error is None]
        return EvalResponse(
            n=n,
            gold=gold if gold != n else None,
            gold_passages=sum(each.gold for each in self.asked),
            gold_absent=sum(len(each.absent) for each in self.asked),
            recall=means(recalls),
            all=means([{k: float(share == 1) for k, share in recall.items()} for recall in recalls]),
            took_ms=percentiles(times),
            mode=self.mode or self.row.mode,
            name=self.row.name if self.row.name != self.row.mode else None,
            cost=mean_cost(self.answer_costs) if answers is not None else self._query_cost(),
            filter=self.filter.result(),
            answers=answers,
            questions=self.scores,
        )

    def _query_cost(self) -> ModelCost | None:
        """Returns the cost of the queries; None if no query called the model."""
        return mean_cost(self.query_costs) if any(calls for calls, _, _ in self.query_costs) else None

    def _answers(self) -> AnswerScores:
        if self.answerer is None:
            raise self.failure or CommandError("no question was asked.")
        scores = [score for _, score in self.answered]
        answered = [score for score in scores if score.error is None]
        points = [score.entities_a_point for score in answered if score.entities_a_point is not None]
        return AnswerScores(
            n=len(scores),
            em=mean([score.em for score in scores]),
            f1=mean([score.f1 for score in scores]),
            keyword_f1=mean([score.keyword_f1 for score in scores]),
            claims=self._claims(),
            judge=self.judge.result(),
            abstained=sum(not score.found for score in answered),
            prompt_tokens=sum(score.prompt_tokens for score in answered),
            completion_tokens=sum(score.completion_tokens for score in answered),
            answerer=self.answerer,
            failed=len(scores) - len(answered),
            calls=round(fmean(score.calls for score in answered), 4),
            took_ms=percentiles([score.took_ms for score in answered]),
            entities_a_point=mean(points),
            steps=mean_steps([score.steps for score in answered if score.steps]),
            questions=scores,
        )

    def _claims(self) -> ClaimScores | None:
        judged = [(question, bool(score.correct)) for question, score in self.answered if score.correct is not None]
        if not judged:
            return None
        groups: dict[int | str, list[bool]] = {}
        for question, correct in judged:
            if question.pair is not None:
                groups.setdefault(question.pair, []).append(correct)
        pairs = [both for both in groups.values() if len(both) > 1]
        return ClaimScores(
            n=len(judged),
            accuracy=round(fmean(correct for _, correct in judged), 4),
            pairs=len(pairs) or None,
            pair_accuracy=mean([float(all(both)) for both in pairs]),
        )
