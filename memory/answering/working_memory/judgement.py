"""Reads the judge's answer: whether the memory suffices, and what is missing where it does not. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory.answering.working_memory.records.inquiries import Concern
from memory.answering.working_memory.records.points import WorkingMemory
from memory.answering.working_memory.records.trace import DeepSettings, Refusal
from memory.answering.working_memory.rejected_updates import (
    NAMED_TWICE,
    TOO_MANY,
    UNKNOWN_POINT,
    WRONG_FORM,
    Refusals,
    without_last,
)
from memory.llm.errors import BadAnswer
from memory.llm.json_answers import replace_surrogates, whole_number

MAX_CONCERN_CHARS = 500
"""Characters of a concern, and of a subquery."""
NO_SUBQUERY = "no subquery"
NOT_LOCAL = "not about a point"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the judge says. Not `enough` and no concern: there is nothing more to look for."""

    enough: bool
    concerns: tuple[Concern, ...] = ()
    refused: tuple[Refusal, ...] = ()


def read_judgement(
    value: Any, memory: WorkingMemory, asked: Sequence[str], settings: DeepSettings, cut: bool = False
) -> Judgement:
    """What the model's JSON says. `asked` are the subqueries of the steps before. Raises BadAnswer for another shape.

    A concern about a point that is not there is refused, and so is a subquery that was asked before. With `only` local a
    concern beyond the memory is refused; with `only` global every concern is taken as one beyond it. `cut`: the answer
    ended at its length limit.
    """
    said = next(
        (
            each
            for each in [value, *(value if isinstance(value, list) else [])]
            if isinstance(each, dict)
            and (isinstance(each.get("enough"), bool) or isinstance(each.get("concerns"), list))
        ),
        None,
    )
    if said is None:
        raise BadAnswer("wrong schema", 'the model\'s answer has no "enough"')
    if said.get("enough") is True:
        return Judgement(True)
    refusals = Refusals("judge")
    given = said.get("concerns")
    raised = given if isinstance(given, list) else []
    if cut:
        raised = without_last(raised, refusals)
    concerns: list[Concern] = []
    before = {_key(subquery) for subquery in asked}
    for each in raised:
        if not isinstance(each, dict):
            refusals.add(WRONG_FORM, each)
            continue
        text, subquery = _text(each.get("concern")), _text(each.get("subquery"))
        at = whole_number(each.get("point", 0))
        if not subquery:
            refusals.add(NO_SUBQUERY, each)
        elif at is None:
            refusals.add(WRONG_FORM, each)
        elif not 0 <= at <= len(memory.points):
            refusals.add(UNKNOWN_POINT, at)
        elif settings.only == "local" and not at:
            refusals.add(NOT_LOCAL, subquery)
        elif _key(subquery) in before:
            refusals.add(NAMED_TWICE, subquery)
        elif len(concerns) == settings.concerns:
            refusals.add(TOO_MANY, subquery)
        else:
            before.add(_key(subquery))
            point = memory.points[at - 1].id if at and settings.only != "global" else None
            concerns.append(Concern(text or subquery, subquery, point))
    return Judgement(False, tuple(concerns), tuple(refusals.all))


def _text(value: Any) -> str:
    return replace_surrogates(" ".join(value.split())[:MAX_CONCERN_CHARS]) if isinstance(value, str) else ""


def _key(subquery: str) -> str:
    return " ".join(subquery.casefold().split()).rstrip(" ?.!")
