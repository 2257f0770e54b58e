"""One evaluation: asks every question in every row, one at a time, so that each time measures a single query."""

from collections.abc import Sequence

from cli.errors import CommandError, Exit
from cli.evaluation.comparison import compare
from cli.evaluation.questions import EvalQuestion
from cli.evaluation.requests import EvalRequests
from cli.evaluation.row_scores import RowScores
from cli.evaluation.rows import Row
from daemon.contract.answering.ask import AskResponse
from daemon.contract.evaluation import ComparisonResponse, EvalResponse


def evaluate(
    questions: Sequence[EvalQuestion],
    rows: Sequence[Row],
    requests: EvalRequests,
    saved: Sequence[EvalResponse] = (),
) -> ComparisonResponse:
    """Returns the scores of the `saved` rows and of each row, and the differences of all rows from the first.

    The daemon caches the vectors of its last queries. So if rows are compared, each question is asked once before the
    measurement, because otherwise only the first row's time would include the encoding.
    """
    for row in rows:
        _require_measurable(questions, row, requests)
    scores = [RowScores(row, requests.ks) for row in rows]
    queried = next((row for row in rows if row.is_queried), None)
    for question in questions:
        if len(rows) > 1 and queried is not None and question.gold:
            requests.query(question, queried)
        for of_row in scores:
            _ask(question, of_row, requests)
    judge = requests.judge if requests.judges else None
    return compare([*saved, *(of_row.result() for of_row in scores)], questions, judge)


def _ask(question: EvalQuestion, scores: RowScores, requests: EvalRequests) -> None:
    row = scores.row
    query = requests.query(question, row) if row.is_queried and question.gold else None
    answer: AskResponse | CommandError | None = None
    if requests.answers(question, row):
        try:
            answer = requests.answer(question, row)
        except CommandError as error:
            if error.code is not Exit.FAILED or error.problem is None:
                raise
            answer = error
    scores.add(question, query, answer, requests.judge if requests.judges else None)


def _require_measurable(questions: Sequence[EvalQuestion], row: Row, requests: EvalRequests) -> None:
    if row.answerer is not None and not any(requests.answers(question, row) for question in questions):
        raise CommandError("none of the questions has an `answer` to compare with.")
    if row.answerer is None and not any(question.gold for question in questions):
        raise CommandError(
            "none of the questions names gold passages or documents.", hint="Have them answered: --answers."
        )
