"""`eval` on a terminal: one row per mode."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from cli.evaluation.continual import Segment
from cli.render.lines import DIM, HEADING, table, text
from cli.terminal_text import count, milliseconds
from daemon.contract.evaluation import (
    AnswerScores,
    AverageScores,
    ComparisonResponse,
    Difference,
    EvalResponse,
    FilesResponse,
    JudgedComparison,
    StepScores,
)

MEASURES = {"EM": "em", "F1": "f1", "keyword F1": "keyword_f1", "accuracy": "accuracy"}
"""Fields of scores, by column heading."""


def comparison_lines(found: ComparisonResponse) -> list[Text]:
    """Returns the table of all modes, and below it the differences between them.

    Columns: recall@k, all@k (the share of questions with every gold passage), the answers' scores, the time of a query, and the
    model's cost.
    """
    results = found.modes
    columns = _columns(results)
    rows = zip([result.label for result in results], *columns.values(), strict=True)
    gold = next((result.gold for result in results if result.gold is not None), None)
    questions = count(found.n, "question") + (f", {gold:,} with known gold" if gold is not None else "")
    lines = [*table(("mode", *columns), rows, right=range(1, len(columns) + 1)), text((questions, DIM))]
    if found.gold_absent:
        absent = f"{found.gold_absent:,} of {count(found.gold_passages, 'gold passage')} are not in the memory"
        lines.append(text((f"{absent}; they count as not found", "yellow")))
    for result in results:
        if (statistics := result.filter) is not None:
            summary = (
                f"{statistics.kept:.0%} of the triples kept, {statistics.emptied:,} queries left without, "
                f"{statistics.unfiltered:,} unfiltered"
            )
            lines.append(text(("recognition memory ", DIM), result.label, (f": {summary}", DIM)))
        if (scores := result.answers) is not None:
            lines += answer_score_lines(scores, result.label if len(results) > 1 else None)
            lines += step_lines(scores.steps)
    return [*lines, *difference_lines(found.differences), *judged_lines(found.judged)]


def _columns(results: Sequence[EvalResponse]) -> dict[str, list[str]]:
    """Returns the columns' cells by heading, without columns that are empty for all modes."""
    columns = recall_columns(results)
    if len(results) > 1:
        answers = [result.answers for result in results]
        claims = [scores.claims if scores else None for scores in answers]
        judges = [scores.judge if scores else None for scores in answers]
        columns |= _known(
            {head: [getattr(scores, MEASURES[head], None) for scores in answers] for head in ("EM", "F1")}
        )
        columns |= _known({"accuracy": [scores.accuracy if scores else None for scores in claims]})
        columns |= _known({"compreh.": [scores.comprehensiveness if scores else None for scores in judges]}, 2)
        columns |= _known({"diversity": [scores.diversity if scores else None for scores in judges]}, 2)
    columns |= {name: [milliseconds(getattr(each.took_ms, name)) for each in results] for name in ("p50", "p95")}
    costs = [result.cost for result in results]
    if any(costs):
        columns["calls"] = [f"{cost.calls:.2f}" if cost else "0" for cost in costs]
        columns["tokens"] = [
            f"{cost.prompt_tokens:,.0f} + {cost.completion_tokens:,.0f}" if cost else "0" for cost in costs
        ]
    return columns


def recall_columns(results: Sequence[EvalResponse | AverageScores]) -> dict[str, list[str]]:
    ks = dict.fromkeys(k for result in results for k in result.recall)
    columns = {f"recall@{k}": [_number(result.recall.get(k)) for result in results] for k in ks}
    return columns | {f"all@{k}": [_number(result.all.get(k)) for result in results] for k in ks}


def _known(columns: Mapping[str, Sequence[float | None]], decimals: int = 4) -> dict[str, list[str]]:
    """Returns the cells of the columns that have a value."""
    return {
        head: [_number(value, decimals) for value in values]
        for head, values in columns.items()
        if any(value is not None for value in values)
    }


def _measures(scores: Sequence[Any]) -> dict[str, list[str]]:
    """Returns the columns of the `MEASURES` that are known for any of `scores`."""
    return _known({head: [getattr(each, name, None) for each in scores] for head, name in MEASURES.items()})


def _number(value: float | None, decimals: int = 4) -> str:
    return "–" if value is None else f"{value:.{decimals}f}"


def step_lines(steps: Sequence[StepScores]) -> list[Text]:
    """Returns the table with the scores of the answers after each step."""
    if not steps:
        return []
    columns = {"step": [f"{step.step}" for step in steps]}
    for k in dict.fromkeys(k for step in steps for k in step.recall):
        columns[f"recall@{k}"] = [_number(step.recall.get(k)) for step in steps]
    columns |= _measures(steps) | {"calls": [f"{step.calls:.2f}" for step in steps]}
    return table(list(columns), zip(*columns.values(), strict=True), right=range(len(columns)))


def files_lines(found: FilesResponse) -> list[Text]:
    """Returns the table of each file, then the averages."""
    lines: list[Text] = []
    for each in found.files:
        lines += [text((each.file, HEADING)), *comparison_lines(each), Text()]
    columns = recall_columns(found.averages) | _measures(found.averages)
    heads = [f"average of {count(len(found.files), 'file')}", *columns]
    labels = [row.name or row.mode or "(configured)" for row in found.averages]
    return [*lines, *table(heads, zip(labels, *columns.values(), strict=True), right=range(1, len(heads)))]


def difference_lines(differences: Sequence[Difference]) -> list[Text]:
    """Returns the table of differences between each mode and the first."""
    if not differences:
        return []
    rows = [
        (
            f"{each.mode} - {each.baseline}, {each.measure}",
            f"{each.difference:+.4f}",
            f"{each.low:+.4f} … {each.high:+.4f}",
            f"{each.p:.4f}",
        )
        for each in differences
    ]
    return [Text(), *table(("", "difference", "95 % interval", "p"), rows, right=(1, 2, 3))]


def judged_lines(comparisons: Sequence[JudgedComparison]) -> list[Text]:
    """Returns the table of the judge's comparisons of two modes."""
    if not comparisons:
        return []
    rows = [
        (
            f"{each.mode} against {each.baseline}, {each.criterion}",
            *(f"{number}" for number in (each.wins, each.ties, each.losses)),
            f"{each.win_rate:.4f}",
        )
        for each in comparisons
    ]
    return [Text(), *table(("judged", "wins", "ties", "losses", "win rate"), rows, right=(1, 2, 3, 4))]


def answer_score_lines(scores: AnswerScores, mode: str | None = None) -> list[Text]:
    """Returns the lines with the quality and cost of the answers."""
    tokens = f"{scores.prompt_tokens / scores.n:,.0f} + {scores.completion_tokens / scores.n:,.0f} tokens"
    calls = f"{scores.calls:.2f} calls"
    times = f", {milliseconds(scores.took_ms.p50)} (p95 {milliseconds(scores.took_ms.p95)})" if scores.took_ms else ""
    worth = [f"EM {scores.em:.4f}, F1 {scores.f1:.4f}"] if scores.em is not None else []
    worth += [f"keyword F1 {scores.keyword_f1:.4f}"] if scores.keyword_f1 is not None else []
    if (claims := scores.claims) is not None:
        pairs = f", {claims.pair_accuracy:.4f} of {count(claims.pairs or 0, 'pair')}" if claims.pairs else ""
        worth.append(f"accuracy {claims.accuracy:.4f} of {count(claims.n, 'claim')}{pairs}")
    if (judge := scores.judge) is not None:
        right = f", {judge.accuracy:.4f} right" if judge.accuracy is not None else ""
        failed = f", {judge.failed:,} verdicts missing" if judge.failed else ""
        worth.append(
            f"judged {judge.comprehensiveness:.2f} comprehensive, {judge.diversity:.2f} diverse{right} of {judge.n:,}{failed}"
        )
    head = f"answers ({f'{mode}, ' if mode else ''}{scores.answerer}): {', '.join(worth)}"
    lines = [text(head, (f" of {scores.n:,}; a question: {tokens}, {calls}{times}", DIM))]
    if scores.abstained:
        lines.append(text((f"{count(scores.abstained, 'question')} not answered: the model abstained", DIM)))
    if scores.entities_a_point is not None:
        lines.append(text(("points have ", DIM), f"{scores.entities_a_point:.2f}", (" entities on average", DIM)))
    if scores.failed:
        why = next(each.error for each in scores.questions if each.error)
        lines.append(text((f"{count(scores.failed, 'question')} without an answer: {why}", "red")))
    return lines


Growth = Sequence[tuple[Segment, ComparisonResponse]]
"""The measurements after each segment."""


def continual_lines(growth: Growth, questions: int) -> list[Text]:
    """Returns a table with one line per segment and mode: recall, the share of questions with every gold passage, and the
    scores of the answers."""
    rows = [(segment, result) for segment, found in growth for result in found.modes]
    segments, results = [segment for segment, _ in rows], [result for _, result in rows]
    columns = {
        "segment": [f"{segment.number}" for segment in segments],
        "documents": [f"{segment.documents:,}" for segment in segments],
        "passages": [f"{segment.passages:,}" for segment in segments],
    }
    several = len(growth[0][1].modes) > 1
    columns |= {"mode": [result.label for result in results]} if several else {}
    columns |= recall_columns(results) | _measures([result.answers for result in results])
    first, measured = growth[0]
    which = "the first segment" if first.number == 1 else f"segment {first.number}"
    summary = f"{count(measured.n, 'question')} of {questions}, answered by {which}"
    return [
        *table(list(columns), zip(*columns.values(), strict=True), right=range(len(columns))),
        text((summary if several else f"{summary} · {results[0].label}", DIM)),
    ]


def continual_json(growth: Growth, several: bool) -> dict[str, Any]:
    """Returns the JSON of `eval` with `segments` added; it has `modes` if modes were compared."""
    last = growth[-1][1]
    whole = last.model_dump(mode="json") if several else last.modes[0].model_dump(mode="json")
    rows = []
    for segment, found in growth:
        row = {"segment": segment.number, "documents": segment.documents, "passages": segment.passages}
        figures = [_figures(result) for result in found.modes]
        rows.append(row | ({"modes": figures} if several else figures[0]))
    return whole | {"segments": rows}


def _figures(result: EvalResponse) -> dict[str, Any]:
    """Returns the result without the scores of individual questions."""
    shown = result.model_dump(mode="json", include={"mode", "name", "recall", "all", "took_ms"})
    if (scores := result.answers) is not None:
        shown["answers"] = scores.model_dump(mode="json", exclude={"questions"})
    return shown
