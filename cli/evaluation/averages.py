"""Averages of each row's figures over several question files."""

from collections.abc import Mapping, Sequence

from cli.evaluation.scoring import mean, means
from daemon.contract.evaluation import AverageScores, ComparisonResponse, EvalResponse, FileComparison, FilesResponse


def averaged(found: Mapping[str, ComparisonResponse]) -> FilesResponse:
    """Returns the comparisons by file, and the means of each row's figures, in which every file counts the same."""
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
