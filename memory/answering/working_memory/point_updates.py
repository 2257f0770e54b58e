"""Changes of points: update, insertion, merging (HGMem, section 3.5). Pure functions from memory to memory.

A model proposes changes as JSON, which may contain anything. Each proposal is accepted or refused; refusals have a few fixed
reasons. Model output raises no error here, except `BadAnswer` for JSON without the expected lists.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory.answering.working_memory.judgement import (
    NAMED_TWICE,
    NOT_RETRIEVED,
    SINGLE_POINT,
    SWITCHED_OFF,
    TOO_MANY,
    UNKNOWN_ENTITY_NUMBER,
    UNKNOWN_PASSAGE_NUMBER,
    UNKNOWN_POINT,
    WITHOUT_DESCRIPTION,
    WITHOUT_ENTITY,
    WITHOUT_PASSAGE,
    WRONG_FORM,
    Refusals,
    without_last,
)
from memory.answering.working_memory.points import MemoryPoint, WorkingMemory
from memory.answering.working_memory.prompts import Material
from memory.answering.working_memory.trace import DeepSettings, PointChange, Refusal
from memory.llm.errors import BadAnswer
from memory.llm.json_answers import objects_in, replace_surrogates, whole_number
from memory.phrase_normalisation import normalise_phrase

MAX_POINTS = 32
"""Maximum number of points of one working memory, because every prompt contains all of them."""
MAX_POINT_ENTITIES = 40
"""Maximum number of entities of an inserted point. A merged point has the union of its points' entities, which may be
larger."""
MAX_DESCRIPTION_CHARS = 2_000
"""Maximum number of characters of a description; the rest is cut off."""
MAX_NAME_CHARS = 200


@dataclass(frozen=True, slots=True)
class Evolution:
    """`held`: names in the model's answer that the graph has and the prompt did not show."""

    memory: WorkingMemory
    changes: tuple[PointChange, ...] = ()
    refused: tuple[Refusal, ...] = ()
    held: tuple[str, ...] = ()


def lists(value: object, *names: str) -> dict[str, list[Any]]:
    """Returns the lists under `names` in a model's object, in the order in which the model wrote them, with [] for absent
    names.

    Raises BadAnswer if all names are absent.
    """
    for candidate in objects_in(value):
        written = {name: list(each) for name, each in candidate.items() if name in names and isinstance(each, list)}
        if written:
            return {**{name: [] for name in names if name not in written}, **written}
    raise BadAnswer("wrong schema", f'the model\'s answer has no list "{names[0]}"')


def apply_evolution(
    memory: WorkingMemory,
    material: Material,
    value: object,
    settings: DeepSettings,
    in_graph: Callable[[str], bool],
    cut: bool = False,
) -> Evolution:
    """Applies the updates and insertions that the model proposes for the retrieved material.

    `in_graph(phrase)`: whether the graph has the phrase. A name in the graph but not in the material is refused, because the
    model cannot know it from the material. A name outside the graph is added to the point as absent. `cut`: the reply reached
    its length limit.
    """
    proposed = lists(value, "updates", "inserts")
    refusals = Refusals("evolve")
    if cut:
        last = next(reversed(proposed))
        proposed[last] = without_last(proposed[last], refusals)
    points, changes = list(memory.points), []
    updated: set[int] = set()
    for proposal in proposed["updates"]:
        if not settings.update:
            refusals.add(SWITCHED_OFF, proposal)
            continue
        at = _position(proposal, len(memory.points), refusals)
        if at is None:
            continue
        if at in updated:
            refusals.add(NAMED_TWICE, proposal)
            continue
        description = _description(proposal)
        if not description:
            refusals.add(WITHOUT_DESCRIPTION, proposal)
            continue
        before = points[at]
        more = _passages(proposal, material, refusals)
        after = replace(before, description=description, passages=_union(before.passages, more))
        if after == before:
            refusals.add(NAMED_TWICE, proposal)
            continue
        updated.add(at)
        points[at] = after
        changes.append(PointChange("updated", after, (before,)))
    names = _EntityNames(memory, material, in_graph)
    made = memory.made
    for proposal in proposed["inserts"]:
        if not isinstance(proposal, dict):
            refusals.add(WRONG_FORM, proposal)
            continue
        description = _description(proposal)
        entities, absent = names.of(proposal, refusals)
        passages = _passages(proposal, material, refusals)
        if not description:
            refusals.add(WITHOUT_DESCRIPTION, proposal)
        elif not entities:
            refusals.add(WITHOUT_ENTITY, description)
        elif not passages:
            refusals.add(WITHOUT_PASSAGE, description)
        elif len(points) >= MAX_POINTS:
            refusals.add(TOO_MANY, description)
        elif any(point.description == description for point in points):
            refusals.add(NAMED_TWICE, description)
        else:
            made += 1
            both = tuple(sorted({*entities, *absent}))
            point = MemoryPoint(f"p{made}", description, both, tuple(passages), tuple(sorted(absent)))
            points.append(point)
            changes.append(PointChange("inserted", point))
    return Evolution(WorkingMemory(tuple(points), made), tuple(changes), tuple(refusals.all), tuple(names.held))


def apply_merges(memory: WorkingMemory, value: object, cut: bool = False) -> Evolution:
    """Applies the merges that the model proposes. Entities and passages are unions; the model writes the description.

    The merged point gets the position of the first point that it replaces. A point is merged at most once per step. `cut`: the
    reply reached its length limit.
    """
    proposed = lists(value, "merges")["merges"]
    refusals = Refusals("merge")
    if cut:
        proposed = without_last(proposed, refusals)
    points: list[MemoryPoint | None] = list(memory.points)
    changes, made = [], memory.made
    for proposal in proposed:
        description = _description(proposal)
        named = _positions(proposal, len(points), refusals)
        free = [at for at in named if points[at] is not None]
        for at in named:
            if points[at] is None:
                refusals.add(NAMED_TWICE, f"point {at + 1}")
        if len(free) < 2:
            refusals.add(SINGLE_POINT, proposal)
            continue
        if not description:
            refusals.add(WITHOUT_DESCRIPTION, proposal)
            continue
        before = tuple(point for at in free if (point := points[at]) is not None)
        made += 1
        merged = MemoryPoint(
            f"p{made}",
            description,
            tuple(sorted({entity for point in before for entity in point.entities})),
            _union(*(point.passages for point in before)),
            tuple(sorted({entity for point in before for entity in point.absent})),
        )
        changes.append((min(free), PointChange("merged", merged, before)))
        for at in free:
            points[at] = None
    at_place = {at: change.point for at, change in changes}
    left = tuple(point for at, each in enumerate(points) if (point := at_place.get(at) or each) is not None)
    return Evolution(WorkingMemory(left, made), tuple(change for _, change in changes), tuple(refusals.all))


class _EntityNames:
    """Resolves the entities that the model names for a new point: phrases of the graph, and names outside the graph."""

    def __init__(self, memory: WorkingMemory, material: Material, in_graph: Callable[[str], bool]) -> None:
        self._material = material
        absent = {entity for point in memory.points for entity in point.absent}
        self._known = {*material.entities, *material.phrases, *memory.vertices} - absent
        self._in_graph = in_graph
        self.held: list[str] = []

    def of(self, proposal: dict[str, Any], refusals: Refusals) -> tuple[list[str], list[str]]:
        known: dict[str, None] = {}
        absent: dict[str, None] = {}
        for each in _list(proposal, "entities", refusals):
            at = whole_number(each)
            if at is None or not 1 <= at <= len(self._material.entities):
                refusals.add(UNKNOWN_ENTITY_NUMBER, each)
            else:
                known[self._material.entities[at - 1]] = None
        for each in _list(proposal, "names", refusals):
            name = normalise_phrase(each) if isinstance(each, str) and len(each) <= MAX_NAME_CHARS else ""
            if not name:
                refusals.add(WRONG_FORM, each)
            elif name in self._known:
                known[name] = None
            elif name in self.held or self._in_graph(name):
                if name not in self.held:
                    self.held.append(name)
                refusals.add(NOT_RETRIEVED, name)
            else:
                absent[name] = None
        while len(known) + len(absent) > MAX_POINT_ENTITIES:
            refusals.add(TOO_MANY, (absent or known).popitem()[0])
        return list(known), list(absent)


def _position(proposal: object, points: int, refusals: Refusals) -> int | None:
    """Returns the index of the point that an update names; None if there is no such point (recorded as a refusal)."""
    at = whole_number(proposal.get("point")) if isinstance(proposal, dict) else None
    if at is None:
        refusals.add(WRONG_FORM, proposal)
    elif not 1 <= at <= points:
        refusals.add(UNKNOWN_POINT, at)
    else:
        return at - 1
    return None


def _positions(proposal: object, points: int, refusals: Refusals) -> list[int]:
    if not isinstance(proposal, dict):
        refusals.add(WRONG_FORM, proposal)
        return []
    found: dict[int, None] = {}
    for each in _list(proposal, "points", refusals):
        at = whole_number(each)
        if at is None or not 1 <= at <= points:
            refusals.add(UNKNOWN_POINT, each)
        else:
            found[at - 1] = None
    return list(found)


def _description(proposal: object) -> str:
    text = proposal.get("description") if isinstance(proposal, dict) else None
    return replace_surrogates(" ".join(text.split())[:MAX_DESCRIPTION_CHARS]) if isinstance(text, str) else ""


def _passages(proposal: dict[str, Any], material: Material, refusals: Refusals) -> list[str]:
    """Returns the distinct ids of the proposal's passages. Unknown passage numbers are refused."""
    found: dict[str, None] = {}
    for each in _list(proposal, "passages", refusals):
        at = whole_number(each)
        if at is None or not 1 <= at <= len(material.passages):
            refusals.add(UNKNOWN_PASSAGE_NUMBER, each)
        else:
            found[material.passages[at - 1].id] = None
    return list(found)


def _list(proposal: dict[str, Any], name: str, refusals: Refusals) -> list[Any]:
    value = proposal.get(name)
    if value is None or isinstance(value, list):
        return value or []
    refusals.add(WRONG_FORM, value)
    return []


def _union(*ids: Sequence[str]) -> tuple[str, ...]:
    """Returns the distinct ids in order of appearance."""
    return tuple(dict.fromkeys(id for each in ids for id in each))
