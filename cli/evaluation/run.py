"""One evaluation: asks every question in every row, one at a time, so that each time measures a single query."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cli.errors import CommandError, Exit
from cli.evaluation.comparison import compare
from cli.evaluation.judging import Judge
from cli.evaluation.questions import EvalQuestion
from cli.evaluation.row_scores import RowScores
from cli.evaluation.rows import Row
from daemon.contract.answering.ask import AskResponse
from daemon.contract.evaluation import ComparisonResponse, EvalResponse
from daemon.contract.query import QueryResponse

AskQuery = Callable[[EvalQuestion, Row], QueryResponse]
AskAnswer = Callable[[EvalQuestion, Row], AskResponse]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The measures, and the functions that query the daemon. `judge` judges the answers."""

    ks: Sequence[int]
    query: AskQuery
    answer: AskAnswer
    judge: Judge | None = None

    def answers(self, question: EvalQuestion, row: Row) -> bool:
        """Returns whether the row answers the question: there are known answers to compare with, or a judge."""
        known = bool(question.answers) or question.holds is not None
        return row.answerer is not None and (known or self.judge is not None)


def evaluate(
    questions: Sequence[EvalQuestion],
    rows: Sequence[Row],
    evaluation: Evaluation,
    saved: Sequence[EvalResponse] = (),
) -> ComparisonResponse:
    """Returns the scores of the `saved` rows and of each row, and the differences of all rows from the first.

    The daemon caches the vectors of its last queries. If rows are compared, each question is therefore asked once before the
    measurement; otherwise only the first row's time would include the encoding.
    """
    for row in rows:
        _require_measurable(questions, row, evaluation)
    scores = [RowScores(row, evaluation.ks) for row in rows]
    queried = next((row for row in rows if row.is_queried), None)
    for question in questions:
        if len(rows) > 1 and queried is not None and question.gold:
            evaluation.query(question, queried)
        for of_row in scores:
            _ask(question, of_row, evaluation)
    return compare([*saved, *(of_row.result() for of_row in scores)], questions, evaluation.judge)


def _ask(question: EvalQuestion, scores: RowScores, evaluation: Evaluation) -> None:
    row = scores.row
    query = evaluation.query(question, row) if row.is_queried and question.gold else None
    answer: AskResponse | CommandError | None = None
    if evaluation.answers(question, row):
        try:
            answer = evaluation.answer(question, row)
        except CommandError as error:
            if error.code is not Exit.FAILED or error.problem is None:
                raise
            answer = error
    scores.add(question, query, answer, evaluation.judge)


def _require_measurable(questions: Sequence[EvalQuestion], row: Row, evaluation: Evaluation) -> None:
    if row.answerer is not None and not any(evaluation.answers(question, row) for question in questions):
        raise CommandError("none of the questions has an `answer` to compare with.")
    if row.answerer is None and not any(question.gold for question in questions):
        raise CommandError(
            "none of the questions names gold passages or documents.", hint="Have them answered: --answers."
        )
