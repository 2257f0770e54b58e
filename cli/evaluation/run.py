"""One evaluation: every question is asked in every mode, one after the other so that the times are those of one query alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cli.errors import CommandError, Exit
from cli.evaluation.answer_tally import AnswerTally
from cli.evaluation.judging import Judge, PairTally
from cli.evaluation.questions import EvalQuestion
from cli.evaluation.scoring import RetrievalTally, percentiles
from cli.evaluation.significance import Values, differences
from daemon.contract.answering.ask import AskResponse
from daemon.contract.choices import NO_RETRIEVAL, Answerer
from daemon.contract.evaluation import ComparisonResponse, EvalResponse
from daemon.contract.query import QueryResponse

AskQuery = Callable[[str, str | None], QueryResponse]
"""Asks a question in a mode (`None`: the configured one)."""
AskAnswer = Callable[[EvalQuestion, str | None], AskResponse]
"""Has a question answered in a mode."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is measured. `answer` is None where only retrieval is; `answerer` says who answers, `judge` judges the answers."""

    ks: Sequence[int]
    query: AskQuery
    answer: AskAnswer | None = None
    answerer: Answerer = Answerer.SINGLE
    judge: Judge | None = None

    def answers(self, question: EvalQuestion) -> bool:
        """Whether the question is answered: there is something to hold the answer against, or somebody to judge it."""
        known = bool(question.answers) or question.holds is not None
        return self.answer is not None and (known or self.judge is not None)


class _Row:
    """One mode of an evaluation."""

    def __init__(self, evaluation: Evaluation, mode: str | None) -> None:
        self.mode = mode
        self.answers = AnswerTally()
        self.retrieval = RetrievalTally(mode, evaluation.ks)
        self._evaluation = evaluation
        self._steps = evaluation.answer is not None and evaluation.answerer is Answerer.ITERATIVE
        self.queried = mode != NO_RETRIEVAL and not self._steps

    def ask(self, question: EvalQuestion) -> str | None:
        """The answer, None where there is none."""
        if self.queried and question.gold:
            self.retrieval.add_query(question, self._evaluation.query(question.text, self.mode))
        judge = self._evaluation.judge
        if self._evaluation.answer is None or not self._evaluation.answers(question):
            return None
        try:
            answer = self._evaluation.answer(question, self.mode)
        except CommandError as error:
            if error.code is not Exit.FAILED or error.problem is None:
                raise
            self.answers.add_failure(question, error, judge)
            if self._steps:
                self.retrieval.add_passages(question, ())
            return None
        self.answers.add(question, answer, judge)
        if self._steps:
            self.retrieval.add_passages(question, answer.passages)
        return answer.answer

    def values(self) -> Values:
        return self.retrieval.values() | self.answers.values()

    def result(self, n: int, passages: int, absent: int) -> EvalResponse:
        """`passages`: the number of gold passages; `absent` of them are not in the memory."""
        scores = self.answers.result() if self.answers.scores else None
        times = self.retrieval.times or [score.took_ms for score in self.answers.scores if score.error is None]
        return EvalResponse(
            n=n,
            gold=self.retrieval.gold if self.retrieval.gold != n else None,
            gold_passages=passages,
            gold_absent=absent,
            recall=self.retrieval.recall(),
            all=self.retrieval.all(),
            took_ms=percentiles(times),
            mode=self.retrieval.mode,
            cost=self.answers.cost() if scores is not None else self.retrieval.cost(),
            filter=self.retrieval.filter(),
            answers=scores,
        )


def evaluate(
    questions: Sequence[EvalQuestion], modes: Sequence[str | None], evaluation: Evaluation
) -> ComparisonResponse:
    """The scores of each mode, and how far the modes differ from the first.

    The daemon remembers the vectors of its last queries. Where modes are compared, each question is therefore asked once
    more before it counts: else the mode that happens to be first would pay for encoding it, and the others not.
    """
    _require_measurable(questions, evaluation)
    rows = [_Row(evaluation, mode) for mode in modes]
    pairs = [PairTally() for _ in rows[1:]]
    queried = next((row for row in rows if row.queried), None)
    for question in questions:
        if len(rows) > 1 and queried is not None and question.gold:
            evaluation.query(question.text, queried.mode)
        answers = [row.ask(question) for row in rows]
        if evaluation.judge is not None and question.holds is None and answers[0] is not None:
            for answer, pair in zip(answers[1:], pairs, strict=True):
                if answer is not None:
                    pair.compare(question, answer, answers[0], evaluation.judge)
    names = [row.retrieval.mode or "(configured)" for row in rows]
    passages, absent = sum(each.gold for each in questions), sum(len(each.absent) for each in questions)
    return ComparisonResponse(
        n=len(questions),
        gold_passages=passages,
        gold_absent=absent,
        modes=[row.result(len(questions), passages, absent) for row in rows],
        differences=differences(names, [row.values() for row in rows]),
        judged=[each for name, pair in zip(names[1:], pairs, strict=True) for each in pair.result(name, names[0])],
    )


def _require_measurable(questions: Sequence[EvalQuestion], evaluation: Evaluation) -> None:
    if evaluation.answer is not None and not any(map(evaluation.answers, questions)):
        raise CommandError("none of the questions has an `answer` to compare with.")
    if evaluation.answer is None and not any(question.gold for question in questions):
        raise CommandError(
            "none of the questions names gold passages or documents.", hint="Have them answered: --answers."
        )
