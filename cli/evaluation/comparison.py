"""Compares rows (measured now or saved) over the same questions with the first row, by each measure and by a judge.

The significance of differences is tested with values paired by question; a fixed seed makes the figures repeatable.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from cli.errors import CommandError
from cli.evaluation.judging import Judge, PairTally
from cli.evaluation.questions import EvalQuestion
from cli.evaluation.scoring import mean, means
from cli.files import read_json
from daemon.contract.evaluation import (
    AverageScores,
    ComparisonResponse,
    Difference,
    EvalResponse,
    FileComparison,
    FilesResponse,
    JudgedComparison,
    QuestionScore,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 9_999
SEED = 0
Values = Mapping[str, Mapping[str, float]]
"""Values by measure (such as "recall@5") and question."""


def differences(names: Sequence[str], values: Sequence[Values]) -> list[Difference]:
    """Returns each row's differences from the first row, by measure. Only measures and questions of both rows count; a measure
    needs at least two questions."""
    found = []
    for name, of_row in list(zip(names, values, strict=True))[1:]:
        for measure, of_first in values[0].items():
            both = [key for key in of_first if key in of_row.get(measure, {})]
            if len(both) > 1:
                mine, theirs = [of_row[measure][key] for key in both], [of_first[key] for key in both]
                found.append(_difference(measure, name, mine, names[0], theirs))
    return found


def _difference(
    measure: str, mode: str, values: Sequence[float], baseline: str, of_baseline: Sequence[float]
) -> Difference:
    import numpy as np

    gains = np.asarray(values, dtype=np.float64) - np.asarray(of_baseline, dtype=np.float64)
    drawing = np.random.default_rng(SEED)
    means = [gains[drawing.integers(len(gains), size=len(gains))].mean() for _ in range(RESAMPLES)]
    low, high = np.percentile(means, (2.5, 97.5))
    return Difference(
        measure=measure,
        mode=mode,
        baseline=baseline,
        n=len(gains),
        difference=round(float(gains.mean()), 4),
        low=round(float(low), 4),
        high=round(float(high), 4),
        p=round(_p_value(gains), 4),
    )


def _p_value(gains: "NDArray[np.float64]") -> float:
    """Returns the two-sided p-value of the permutation test of paired values, which draws random signs of their differences.

    All combinations of signs are tested if there are at most `RESAMPLES` combinations.
    """
    import numpy as np

    n = len(gains)
    if all_signs := 2**n <= RESAMPLES:
        heads = np.arange(2**n)[:, None] >> np.arange(n) & 1
    else:
        heads = np.random.default_rng(SEED).integers(2, size=(RESAMPLES, n), dtype=np.int8)
    means, found = (2 * heads - 1) @ gains / n, gains.mean()
    slack = 1e-12 + 1e-12 * abs(found)
    extreme = min(int((means <= found + slack).sum()), int((means >= found - slack).sum()))
    # The observed signs count as one of the random ones, so that p is never 0.
    share = extreme / len(means) if all_signs else (extreme + 1) / (len(means) + 1)
    return min(1.0, 2 * share)


def compare(
    results: Sequence[EvalResponse], questions: Sequence[EvalQuestion], judge: Judge | None
) -> ComparisonResponse:
    """Compares all results with the first. Differences are paired over the questions that both rows have."""
    gold = [(len(each.absent), each.gold) for each in questions]
    return ComparisonResponse(
        n=len(questions),
        gold_passages=sum(known for _, known in gold),
        gold_absent=sum(absent for absent, _ in gold),
        modes=list(results),
        differences=differences([each.label for each in results], [values_of(each) for each in results]),
        judged=_judged(results, questions, judge) if judge is not None else [],
    )


def values_of(result: EvalResponse) -> Values:
    """Returns each question's value, by measure and question."""
    values: dict[str, dict[str, float]] = {}
    for score in result.questions:
        for measure, value in _measures(score):
            values.setdefault(measure, {})[_key(score)] = value
    return values


def _measures(score: QuestionScore) -> Iterator[tuple[str, float]]:
    for k, share in score.recall.items():
        yield f"recall@{k}", share
    for name in ("em", "f1", "keyword_f1"):
        value = getattr(score, name)
        if value is not None:
            yield name, value
    if score.correct is not None:
        yield "accuracy", float(score.correct)
    for criterion, value in score.judged.items():
        yield ("judged accuracy" if criterion == "correctness" else criterion), value


def _key(score: QuestionScore) -> str:
    return f"{score.id}\n{score.question}"


def _judged(results: Sequence[EvalResponse], questions: Sequence[EvalQuestion], judge: Judge) -> list[JudgedComparison]:
    """Compares each row's answers with the first row's answers, over the questions that both rows have answered."""
    answers = [{_key(score): score.answer for score in each.questions if score.answer is not None} for each in results]
    found: list[JudgedComparison] = []
    for result, of_row in list(zip(results, answers, strict=True))[1:]:
        tally = PairTally()
        for question in questions:
            key = f"{question.id}\n{question.text}"
            if question.holds is None and key in of_row and key in answers[0]:
                tally.compare(question, of_row[key], answers[0][key], judge)
        found += tally.result(result.label, results[0].label)
    return found


def read_saved(path: Path, question_file: str) -> list[EvalResponse]:
    """Returns the rows of a file written by `--save` or `--json`. If the file covers several question files, returns the rows
    of `question_file`."""
    content = read_json(path)
    try:
        if isinstance(content, dict) and "files" in content:
            files = FilesResponse.model_validate(content).files
            rows = [row for each in files if each.file == question_file for row in each.modes]
        elif isinstance(content, dict) and "modes" in content:
            rows = ComparisonResponse.model_validate(content).modes
        else:
            rows = [EvalResponse.model_validate(content)]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise CommandError(f"{path} is not a saved evaluation: at {where}: {first['msg']}.") from None
    if not any(row.questions for row in rows):
        raise CommandError(
            f"{path} has no scores by question for {question_file}; they are needed for a paired comparison.",
            hint="Save a run with `hippoctl eval QUESTIONS --save FILE`.",
        )
    return [row.model_copy(update={"name": f"{path.stem}: {row.label}"}) for row in rows]


def averaged(found: Mapping[str, ComparisonResponse]) -> FilesResponse:
    """Returns the comparisons by file, and the means of each row's figures; every file has the same weight in the means."""
    by_label: dict[str, list[EvalResponse]] = {}
    for comparison in found.values():
        for row in comparison.modes:
            by_label.setdefault(row.label, []).append(row)
    files = [FileComparison(file=name, **dict(comparison)) for name, comparison in found.items()]
    return FilesResponse(files=files, averages=[_average(rows) for rows in by_label.values()])


def _average(rows: Sequence[EvalResponse]) -> AverageScores:
    answers = [row.answers for row in rows if row.answers is not None]
    return AverageScores(
        mode=rows[0].mode,
        name=rows[0].name,
        recall=means([row.recall for row in rows if row.recall]),
        all=means([row.all for row in rows if row.all]),
        em=mean([each.em for each in answers]),
        f1=mean([each.f1 for each in answers]),
        keyword_f1=mean([each.keyword_f1 for each in answers]),
        accuracy=mean([each.claims.accuracy for each in answers if each.claims is not None]),
    )
