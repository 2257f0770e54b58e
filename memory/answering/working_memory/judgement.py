"""Parses the judge's answer: whether the memory suffices, and otherwise what it lacks. Pure functions.

`read_judgement` parses the answer of a quick step, which includes the subqueries. `read_concerns` parses the answer of the
paper's method, where a separate call writes each concern's subquery (`read_subquery`, `with_subqueries`). Each refusal has one
of a few fixed reasons, so that refusals can be counted (`Refusals`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory.answering.working_memory.inquiries import Concern
from memory.answering.working_memory.points import WorkingMemory
from memory.answering.working_memory.trace import DeepSettings, Purpose, Refusal
from memory.llm.errors import BadAnswer
from memory.llm.json_answers import get_field, objects_in, replace_surrogates, whole_number

MAX_CONCERN_CHARS = 500
"""Maximum number of characters of a concern, and of a subquery."""
NO_SUBQUERY = "no subquery"
NOT_LOCAL = "not about a point"

MAX_LISTED_REFUSALS = 200
"""Maximum number of refusals of one call that are listed individually; further refusals are only counted."""
UNKNOWN_POINT = "no such point"
UNKNOWN_ENTITY_NUMBER = "no such entity"
UNKNOWN_PASSAGE_NUMBER = "no such passage"
WITHOUT_ENTITY = "no entity"
WITHOUT_PASSAGE = "no passage"
WITHOUT_DESCRIPTION = "no description"
NOT_RETRIEVED = "not retrieved"
WRONG_FORM = "wrong form"
TOO_MANY = "too many"
NAMED_TWICE = "twice"
SINGLE_POINT = "alone"
OTHER_KIND = "another kind"
SWITCHED_OFF = "switched off"
CUT_OFF = "cut off"


class Refusals:
    """Collects the refusals of one call: the first `MAX_LISTED_REFUSALS` individually, further refusals as counts."""

    def __init__(self, purpose: Purpose) -> None:
        self._purpose: Purpose = purpose
        self._listed: list[Refusal] = []
        self._more: Counter[str] = Counter()

    def add(self, why: str, what: object) -> None:
        if len(self._listed) < MAX_LISTED_REFUSALS:
            self._listed.append(Refusal(self._purpose, why, replace_surrogates(" ".join(str(what).split())[:200])))
        else:
            self._more[why] += 1

    @property
    def all(self) -> list[Refusal]:
        return self._listed + [Refusal(self._purpose, why, f"{count} more") for why, count in self._more.items()]


def without_last(proposed: list[Any], refusals: Refusals) -> list[Any]:
    """Returns the entries without the last, which a truncated answer may have left incomplete."""
    if proposed:
        refusals.add(CUT_OFF, proposed[-1])
    return proposed[:-1]


@dataclass(frozen=True, slots=True)
class Judgement:
    """If `enough` is false and there are no concerns, nothing is left to search for."""

    enough: bool
    concerns: tuple[Concern, ...] = ()
    refused: tuple[Refusal, ...] = ()


def read_judgement(
    value: object, memory: WorkingMemory, earlier: Sequence[str], settings: DeepSettings, cut: bool = False
) -> Judgement:
    """Returns the judgement in the model's JSON. `earlier`: subqueries of the earlier steps.

    A concern is refused if its point is unknown, or if its subquery was asked before. If `only` is local, a concern without a
    point is refused; if `only` is global, a concern's point is ignored. `cut`: the reply reached its length limit. Raises
    BadAnswer for JSON of another shape.
    """
    judged = _judgement_in(value)
    if judged.get("enough") is True and not settings.forced:
        return Judgement(True)
    refusals = Refusals("judge")
    given = _concerns_in(judged, cut, refusals)
    concerns: list[Concern] = []
    before = {_key(subquery) for subquery in earlier}
    for each in given:
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


def read_concerns(value: object, memory: WorkingMemory, settings: DeepSettings, cut: bool = False) -> Judgement:
    """Returns the judgement in the model's JSON; the subquery of each concern is "".

    All concerns have the kind that the model names, or else the kind of its first concern. Concerns of the other kind are
    refused. `only` sets the kind: if local, a concern without a point is refused; if global, a concern's point is ignored.
    Raises BadAnswer for JSON of another shape.
    """
    judged = _judgement_in(value)
    if judged.get("enough") is True and not settings.forced:
        return Judgement(True)
    refusals = Refusals("judge")
    concerns: list[Concern] = []
    named = {"points": True, "beyond": False}.get(str(judged.get("about")))
    local = named if settings.only is None else settings.only == "local"
    for each in _concerns_in(judged, cut, refusals):
        text = _text(each.get("concern")) if isinstance(each, dict) else ""
        at = whole_number(each.get("point", 0)) if isinstance(each, dict) else None
        if not text or at is None:
            refusals.add(WRONG_FORM, each)
            continue
        if local is None:
            local = at > 0
        if not 0 <= at <= len(memory.points):
            refusals.add(UNKNOWN_POINT, at)
        elif local and not at:
            refusals.add(NOT_LOCAL if settings.only == "local" else OTHER_KIND, text)
        elif not local and at and settings.only != "global":
            refusals.add(OTHER_KIND, text)
        elif len(concerns) == settings.concerns:
            refusals.add(TOO_MANY, text)
        else:
            concerns.append(Concern(text, "", memory.points[at - 1].id if local else None))
    return Judgement(False, tuple(concerns), tuple(refusals.all))


def read_subquery(value: object) -> str:
    """Returns the subquery in the model's JSON. Raises BadAnswer if there is no subquery."""
    subquery = _text(get_field(value, "subquery", "question", "query"))
    if not subquery:
        raise BadAnswer("wrong schema", 'the model\'s "subquery" is not a sentence')
    return subquery


def with_subqueries(
    concerns: Sequence[Concern], subqueries: Sequence[str | None], earlier: Sequence[str]
) -> tuple[tuple[Concern, ...], tuple[Refusal, ...]]:
    """Returns the concerns with their subqueries, and the refused ones.

    A concern is refused if its subquery is None (the call failed) or was asked before.
    """
    refusals = Refusals("subquery")
    before = {_key(subquery) for subquery in earlier}
    kept = []
    for concern, subquery in zip(concerns, subqueries, strict=True):
        if subquery is None:
            refusals.add(NO_SUBQUERY, concern.text)
        elif _key(subquery) in before:
            refusals.add(NAMED_TWICE, subquery)
        else:
            before.add(_key(subquery))
            kept.append(replace(concern, subquery=subquery))
    return tuple(kept), tuple(refusals.all)


def _judgement_in(value: object) -> dict[str, Any]:
    """Returns the first object in the model's JSON that contains a judgement. Raises BadAnswer if there is none."""
    for each in objects_in(value):
        if isinstance(each.get("enough"), bool) or isinstance(each.get("concerns"), list):
            return each
    raise BadAnswer("wrong schema", 'the model\'s answer has no "enough"')


def _concerns_in(judged: dict[str, Any], cut: bool, refusals: Refusals) -> list[Any]:
    given = judged.get("concerns")
    given = given if isinstance(given, list) else []
    return without_last(given, refusals) if cut else given


def _text(value: object) -> str:
    return replace_surrogates(" ".join(value.split())[:MAX_CONCERN_CHARS]) if isinstance(value, str) else ""


def _key(subquery: str) -> str:
    return " ".join(subquery.casefold().split()).rstrip(" ?.!")
