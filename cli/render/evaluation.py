"""`eval` on a terminal: one row per mode."""

from collections.abc import Callable, Sequence
from typing import Any

from rich.text import Text

from cli.evaluation.continual import Segment
from cli.render.lines import DIM, HEADING, align, text
from cli.terminal_text import count, milliseconds
from daemon.contract.evaluation import (
    AnswerScores,
    ComparisonResponse,
    Difference,
    EvalResponse,
    FilesResponse,
    JudgedComparison,
    ModelCost,
    StepScores,
)


def comparison_lines(found: ComparisonResponse) -> list[Text]:
    """Returns the table of all modes, and below it the differences between them.

    Columns: recall@k, all@k (the share of questions with every gold passage), the answers' scores, the time of a query, and the
    model's cost.
    """
    results = found.modes
    columns = _columns(results)
    heads = [text((head, HEADING)) for head in ("mode", *columns)]
    rows = [[text(result.label), *(text(of(result)) for of in columns.values())] for result in results]
    gold = next((result.gold for result in results if result.gold is not None), None)
    asked = count(found.n, "question") + (f", {gold:,} with known gold" if gold is not None else "")
    lines = [*align([heads, *rows], right=range(1, len(columns) + 1)), text((asked, DIM))]
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


def _columns(results: Sequence[EvalResponse]) -> dict[str, Callable[[EvalResponse], str]]:
    """Returns the columns by heading, without those that are empty for all modes."""
    ks = list(dict.fromkeys(k for result in results for k in result.recall))
    columns: dict[str, Callable[[EvalResponse], str]] = {}
    for k in ks:
        columns[f"recall@{k}"] = lambda result, k=k: four_decimals(result.recall.get(k))  # type: ignore[misc]
    for k in ks:
        columns[f"all@{k}"] = lambda result, k=k: four_decimals(result.all.get(k))  # type: ignore[misc]
    if len(results) > 1:
        answers = [result.answers for result in results if result.answers is not None]
        if any(scores.em is not None for scores in answers):
            columns["EM"] = lambda result: four_decimals(result.answers.em if result.answers else None)
            columns["F1"] = lambda result: four_decimals(result.answers.f1 if result.answers else None)
        if any(scores.claims is not None for scores in answers):
            columns["accuracy"] = lambda result: four_decimals(_accuracy(result))
        if any(scores.judge is not None for scores in answers):
            columns["compreh."] = lambda result: _score(result, "comprehensiveness")
            columns["diversity"] = lambda result: _score(result, "diversity")
    columns["p50"] = lambda result: milliseconds(result.took_ms.p50)
    columns["p95"] = lambda result: milliseconds(result.took_ms.p95)
    if any(result.cost is not None for result in results):
        columns["calls"] = lambda result: f"{result.cost.calls:.2f}" if result.cost else "0"
        columns["tokens"] = lambda result: _tokens(result.cost)
    return columns


def four_decimals(value: float | None) -> str:
    """Returns a share with four decimals, or a dash for None."""
    return "–" if value is None else f"{value:.4f}"


def _accuracy(result: EvalResponse) -> float | None:
    return result.answers.claims.accuracy if result.answers and result.answers.claims else None


def _score(result: EvalResponse, criterion: str) -> str:
    judge = result.answers.judge if result.answers else None
    return "–" if judge is None else f"{getattr(judge, criterion):.2f}"


def _tokens(cost: ModelCost | None) -> str:
    return f"{cost.prompt_tokens:,.0f} + {cost.completion_tokens:,.0f}" if cost else "0"


def step_lines(steps: Sequence[StepScores]) -> list[Text]:
    """Returns the table with the scores of the answers after each step."""
    if not steps:
        return []
    ks = list(dict.fromkeys(k for step in steps for k in step.recall))
    measures = {"EM": "em", "F1": "f1", "accuracy": "accuracy"}
    shown = {head: name for head, name in measures.items() if any(getattr(step, name) is not None for step in steps)}
    heads = ["step", *(f"recall@{k}" for k in ks), *shown, "calls"]
    rows = [[text((head, HEADING)) for head in heads]]
    for step in steps:
        values = [f"{step.step}", *(four_decimals(step.recall.get(k)) for k in ks)]
        values += [*(four_decimals(getattr(step, name)) for name in shown.values()), f"{step.calls:.2f}"]
        rows.append([text(value) for value in values])
    return align(rows, right=range(len(heads)))


def files_lines(found: FilesResponse) -> list[Text]:
    """Returns the table of each file, then the averages."""
    lines: list[Text] = []
    for each in found.files:
        lines += [text((each.file, HEADING)), *comparison_lines(each), Text()]
    ks = list(dict.fromkeys(k for each in found.averages for k in each.recall))
    measures = {"EM": "em", "F1": "f1", "keyword F1": "keyword_f1", "accuracy": "accuracy"}
    shown = {
        head: name for head, name in measures.items() if any(getattr(each, name) is not None for each in found.averages)
    }
    heads = [
        f"average of {count(len(found.files), 'file')}",
        *(f"recall@{k}" for k in ks),
        *(f"all@{k}" for k in ks),
        *shown,
    ]
    rows = [[text((head, HEADING)) for head in heads]]
    for row in found.averages:
        values = [*(four_decimals(row.recall.get(k)) for k in ks), *(four_decimals(row.all.get(k)) for k in ks)]
        values += [four_decimals(getattr(row, name)) for name in shown.values()]
        rows.append([text(value) for value in (row.name or row.mode or "(configured)", *values)])
    return [*lines, *align(rows, right=range(1, len(heads)))]


def difference_lines(differences: Sequence[Difference]) -> list[Text]:
    """Returns the table of differences between each mode and the first."""
    if not differences:
        return []
    heads = ("", "difference", "95 % interval", "p")
    rows = [[text((head, HEADING)) for head in heads]]
    for each in differences:
        interval = f"{each.low:+.4f} … {each.high:+.4f}"
        name = f"{each.mode} - {each.baseline}, {each.measure}"
        rows.append([text(name), *(text(value) for value in (f"{each.difference:+.4f}", interval, f"{each.p:.4f}"))])
    return [Text(), *align(rows, right=(1, 2, 3))]


def judged_lines(comparisons: Sequence[JudgedComparison]) -> list[Text]:
    """Returns the table of the judge's comparisons of two modes."""
    if not comparisons:
        return []
    heads = ("judged", "wins", "ties", "losses", "win rate")
    rows = [[text((head, HEADING)) for head in heads]]
    for each in comparisons:
        values = (f"{each.wins}", f"{each.ties}", f"{each.losses}", f"{each.win_rate:.4f}")
        rows.append([text(f"{each.mode} against {each.baseline}, {each.criterion}"), *map(text, values)])
    return [Text(), *align(rows, right=(1, 2, 3, 4))]


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
    """Returns a table with one line per segment: recall, the share of questions with every gold passage, exact match and F1."""
    rows = [(segment, result) for segment, found in growth for result in found.modes]
    ks = list(dict.fromkeys(k for _, result in rows for k in result.recall))
    several = len(growth[0][1].modes) > 1
    answers = any(result.answers is not None and result.answers.em is not None for _, result in rows)
    heads = ["segment", "documents", "passages", *(["mode"] if several else [])]
    heads += [*(f"recall@{k}" for k in ks), *(f"all@{k}" for k in ks), *(["EM", "F1"] if answers else [])]
    lines = [[text((head, HEADING)) for head in heads]]
    for segment, result in rows:
        values = [f"{segment.number}", f"{segment.documents:,}", f"{segment.passages:,}"]
        values += [result.label] if several else []
        values += [*(four_decimals(result.recall.get(k)) for k in ks), *(four_decimals(result.all.get(k)) for k in ks)]
        if answers:
            scores = result.answers
            values += [four_decimals(scores.em if scores else None), four_decimals(scores.f1 if scores else None)]
        lines.append([text(value) for value in values])
    which = "the first segment" if growth[0][0].number == 1 else f"segment {growth[0][0].number}"
    asked = f"{count(growth[0][1].n, 'question')} of {questions}, answered by {which}"
    return [*align(lines, right=range(len(heads))), text((asked if several else f"{asked} · {rows[0][1].label}", DIM))]


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
