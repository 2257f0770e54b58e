"""`eval --continual` on a terminal: one row per segment and mode."""

from collections.abc import Sequence
from typing import Any

from cli.evaluation.continual import Segment
from cli.render.evaluation import four_decimals
from cli.render.lines import DIM, HEADING, align, text
from cli.render.styled_text import Text
from cli.terminal_text import count
from daemon.contract.evaluation import ComparisonResponse, EvalResponse

Growth = Sequence[tuple[Segment, ComparisonResponse]]
"""The measurements after each segment."""


def continual_lines(growth: Growth, questions: int) -> list[Text]:
    """Returns the lines with recall, the share of questions with every gold passage, exact match and F1 after each segment."""
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
    """Returns the JSON of `eval` on the whole memory with `segments` added; for several modes if they were compared."""
    last = growth[-1][1]
    whole = last.model_dump(mode="json") if several else last.modes[0].model_dump(mode="json")
    rows = []
    for segment, found in growth:
        row = {"segment": segment.number, "documents": segment.documents, "passages": segment.passages}
        figures = [_figures(result) for result in found.modes]
        rows.append(row | ({"modes": figures} if several else figures[0]))
    return whole | {"segments": rows}


def _figures(result: EvalResponse) -> dict[str, Any]:
    """Returns the measurements without those of individual questions."""
    shown = result.model_dump(mode="json", include={"mode", "name", "recall", "all", "took_ms"})
    if (scores := result.answers) is not None:
        shown["answers"] = scores.model_dump(mode="json", exclude={"questions"})
    return shown
