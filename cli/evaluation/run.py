"""One evaluation: every question is asked in every mode, one after the other so that the times are those of one query alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cli.errors import CommandError, Exit
from cli.evaluation.answer_tally import AnswerTally
from cli.evaluation.questions import EvalQuestion
from cli.evaluation.scoring import RetrievalTally, percentiles
from cli.evaluation.significance import Values, differences
from daemon.contract.ask import AskResponse
from daemon.contract.choices import NO_RETRIEVAL, Answerer
from daemon.contract.evaluation import ComparisonResponse, EvalResponse
from daemon.contract.query import QueryResponse

AskQuery = Callable[[str, str | None], QueryResponse]
"""Asks a question in a mode (`None`: the configured one)."""
AskAnswer = Callable[[EvalQuestion, str | None], AskResponse]
"""Has a question answered in a mode."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is measured. `answer` is None where only retrieval is; `answerer` says who answers."""

    ks: Sequence[int]
    query: AskQuery
    answer: AskAnswer | None = None
    answerer: Answerer = Answerer.SINGLE


class _Row:
    """One mode of an evaluation."""

    def __init__(self, evaluation: Evaluation, mode: str | None) -> None:
        self.mode = mode
        self.answers = AnswerTally()
        self.retrieval = RetrievalTally(mode, evaluation.ks)
        self._evaluation = evaluation
        self._steps = evaluation.answer is not None and evaluation.answerer is Answerer.ITERATIVE
        self.queried = mode != NO_RETRIEVAL and not self._steps

    def ask(self, question: EvalQuestion) -> None:
        if self.queried and question.gold:
            self.retrieval.add_query(question, self._evaluation.query(question.text, self.mode))
        if self._evaluation.answer is None or not (question.answers or question.holds is not None):
            return
        try:
            answer = self._evaluation.answer(question, self.mode)
        except CommandError as error:
            if error.code is not Exit.FAILED or error.problem is None:
                raise
            self.answers.add_failure(question, error)
            if self._steps:
                self.retrieval.add_passages(question, ())
            return
        self.answers.add(question, answer)
        if self._steps:
            self.retrieval.add_passages(question, answer.passages)

    def values(self) -> Values:
        return self.retrieval.values() | self.answers.values()

    def result(self, n: int) -> EvalResponse:
        scores = self.answers.result() if self.answers.scores else None
        times = self.retrieval.times or [score.took_ms for score in self.answers.scores if score.error is None]
        return EvalResponse(
            n=n,
            gold=self.retrieval.gold if self.retrieval.gold != n else None,
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
    queried = next((row for row in rows if row.queried), None)
    for question in questions:
        if len(rows) > 1 and queried is not None and question.gold:
            evaluation.query(question.text, queried.mode)
        for row in rows:
            row.ask(question)
    names = [row.retrieval.mode or "(configured)" for row in rows]
    return ComparisonResponse(
        n=len(questions),
        modes=[row.result(len(questions)) for row in rows],
        differences=differences(names, [row.values() for row in rows]),
    )


def _require_measurable(questions: Sequence[EvalQuestion], evaluation: Evaluation) -> None:
    judged = any(question.answers or question.holds is not None for question in questions)
    if evaluation.answer is not None and not judged:
        raise CommandError("none of the questions has an `answer` to compare with.")
    if evaluation.answer is None and not any(question.gold for question in questions):
        raise CommandError(
            "none of the questions names gold passages or documents.", hint="Have them answered: --answers."
        )
