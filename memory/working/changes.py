"""How points change: update, insertion, merging (HGMem, section 3.4). Pure functions from memory to memory.

What a model proposes comes as JSON that anything may stand in. Each proposal is taken or refused, and every refusal is
counted with one of a few fixed words; nothing here raises for what a model wrote, but `BadAnswer` for another shape.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory.llm.answers import number, writable
from memory.llm.errors import BadAnswer
from memory.phrases import normalise_phrase
from memory.working.material import Material
from memory.working.types import Change, DeepSettings, Memory, Point, Purpose, Refused

MOST_POINTS = 32
"""In a memory: all of them stand in every prompt."""
MOST_ENTITIES = 40
"""Of an inserted point. A merged one has the union, however many."""
MOST_CHARS = 2_000
"""Of a description; the rest is cut off."""
MOST_NAME_CHARS = 200
MOST_REFUSED = 200
"""Of one call's output that are kept one by one."""

NO_POINT = "no such point"
NO_ENTITY_NUMBER = "no such entity"
NO_PASSAGE_NUMBER = "no such passage"
NO_ENTITY = "no entity"
NO_PASSAGE = "no passage"
NO_DESCRIPTION = "no description"
NOT_RETRIEVED = "not retrieved"
WRONG_FORM = "wrong form"
TOO_MANY = "too many"
TWICE = "twice"
ALONE = "alone"
SWITCHED_OFF = "switched off"
CUT_OFF = "cut off"


@dataclass(frozen=True, slots=True)
class Evolution:
    """The memory after some changes. `held`: names outside of the material that turned out to be the graph's."""

    memory: Memory
    changes: tuple[Change, ...] = ()
    refused: tuple[Refused, ...] = ()
    held: tuple[str, ...] = ()


class Refusals:
    """Collects what is not taken of one call's output: each thing, up to `MOST_REFUSED`, and then only how many more."""

    def __init__(self, purpose: Purpose) -> None:
        self._purpose: Purpose = purpose
        self._told: list[Refused] = []
        self._more: Counter[str] = Counter()

    def add(self, why: str, what: Any) -> None:
        if len(self._told) < MOST_REFUSED:
            self._told.append(Refused(self._purpose, why, writable(" ".join(str(what).split())[:200])))
        else:
            self._more[why] += 1

    @property
    def all(self) -> list[Refused]:
        return self._told + [Refused(self._purpose, why, f"{count} more") for why, count in self._more.items()]


def lists(value: Any, *names: str) -> dict[str, list[Any]]:
    """The lists under `names` in a model's object, a missing one as empty. Raises BadAnswer where none of them is there.

    They stand in the order in which the model wrote them.
    """
    for candidate in [value, *(value if isinstance(value, list) else [])]:
        if isinstance(candidate, dict) and any(isinstance(candidate.get(name), list) for name in names):
            written = {name: list(each) for name, each in candidate.items() if name in names and isinstance(each, list)}
            return {**{name: [] for name in names if name not in written}, **written}
    raise BadAnswer("wrong schema", f'the model\'s answer has no list "{names[0]}"')


def without_half(proposed: list[Any], refusals: Refusals) -> list[Any]:
    """What of an answer's last list can be taken where the answer was cut off: half a sentence must not stand for a whole."""
    if proposed:
        refusals.add(CUT_OFF, proposed[-1])
    return proposed[:-1]


def evolve(
    memory: Memory,
    material: Material,
    value: Any,
    settings: DeepSettings,
    held: Callable[[str], bool],
    cut: bool = False,
) -> Evolution:
    """Updates and insertions that the model proposes over what was retrieved.

    `held` says whether the graph has a phrase. A name outside of the material that the graph has is refused: the model
    cannot know it from what it was shown. A name that the graph lacks joins the point as absent. `cut`: the answer ended
    at its length limit.
    """
    proposed = lists(value, "updates", "inserts")
    refusals = Refusals("evolve")
    if cut:
        last = next(reversed(proposed))
        proposed[last] = without_half(proposed[last], refusals)
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
            refusals.add(TWICE, proposal)
            continue
        description = _description(proposal)
        if not description:
            refusals.add(NO_DESCRIPTION, proposal)
            continue
        before = points[at]
        more = _passages(proposal, material, refusals)
        after = replace(before, description=description, passages=_union(before.passages, more))
        if after == before:
            refusals.add(TWICE, proposal)
            continue
        updated.add(at)
        points[at] = after
        changes.append(Change("updated", after, (before,)))
    names = _Names(memory, material, held)
    made = memory.made
    for proposal in proposed["inserts"]:
        if not isinstance(proposal, dict):
            refusals.add(WRONG_FORM, proposal)
            continue
        description = _description(proposal)
        entities, absent = names.of(proposal, refusals)
        passages = _passages(proposal, material, refusals)
        if not description:
            refusals.add(NO_DESCRIPTION, proposal)
        elif not entities:
            refusals.add(NO_ENTITY, description)
        elif not passages:
            refusals.add(NO_PASSAGE, description)
        elif len(points) >= MOST_POINTS:
            refusals.add(TOO_MANY, description)
        elif any(point.description == description for point in points):
            refusals.add(TWICE, description)
        else:
            made += 1
            both = tuple(sorted({*entities, *absent}))
            point = Point(f"p{made}", description, both, tuple(passages), tuple(sorted(absent)))
            points.append(point)
            changes.append(Change("inserted", point))
    return Evolution(Memory(tuple(points), made), tuple(changes), tuple(refusals.all), tuple(names.held))


def merge(memory: Memory, value: Any, cut: bool = False) -> Evolution:
    """Mergings that the model proposes: entities and passages are the unions, the description is the model's.

    The merged point stands where the first of its points stood; a point is merged once a step. `cut`: the answer ended at
    its length limit.
    """
    proposed = lists(value, "merges")["merges"]
    refusals = Refusals("merge")
    if cut:
        proposed = without_half(proposed, refusals)
    points: list[Point | None] = list(memory.points)
    changes, made = [], memory.made
    for proposal in proposed:
        description = _description(proposal)
        wanted = _positions(proposal, len(points), refusals)
        free = [at for at in wanted if points[at] is not None]
        for at in wanted:
            if points[at] is None:
                refusals.add(TWICE, f"point {at + 1}")
        if len(free) < 2:
            refusals.add(ALONE, proposal)
            continue
        if not description:
            refusals.add(NO_DESCRIPTION, proposal)
            continue
        before = tuple(point for at in free if (point := points[at]) is not None)
        made += 1
        merged = Point(
            f"p{made}",
            description,
            tuple(sorted({entity for point in before for entity in point.entities})),
            _union(*(point.passages for point in before)),
            tuple(sorted({entity for point in before for entity in point.absent})),
        )
        changes.append((min(free), Change("merged", merged, before)))
        for at in free:
            points[at] = None
    at_place = {at: change.point for at, change in changes}
    left = tuple(point for at, each in enumerate(points) if (point := at_place.get(at) or each) is not None)
    return Evolution(Memory(left, made), tuple(change for _, change in changes), tuple(refusals.all))


class _Names:
    """Turns what the model says of a new point's entities into phrases of the graph and names that it lacks."""

    def __init__(self, memory: Memory, material: Material, held: Callable[[str], bool]) -> None:
        self._material = material
        absent = {entity for point in memory.points for entity in point.absent}
        self._known = {*material.entities, *material.phrases, *memory.vertices} - absent
        self._held = held
        self.held: list[str] = []

    def of(self, proposal: dict[str, Any], refusals: Refusals) -> tuple[list[str], list[str]]:
        known: dict[str, None] = {}
        absent: dict[str, None] = {}
        for each in _list(proposal, "entities", refusals):
            at = number(each)
            if at is None or not 1 <= at <= len(self._material.entities):
                refusals.add(NO_ENTITY_NUMBER, each)
            else:
                known[self._material.entities[at - 1]] = None
        for each in _list(proposal, "names", refusals):
            name = normalise_phrase(each) if isinstance(each, str) and len(each) <= MOST_NAME_CHARS else ""
            if not name:
                refusals.add(WRONG_FORM, each)
            elif name in self._known:
                known[name] = None
            elif name in self.held or self._held(name):
                if name not in self.held:
                    self.held.append(name)
                refusals.add(NOT_RETRIEVED, name)
            else:
                absent[name] = None
        while len(known) + len(absent) > MOST_ENTITIES:
            refusals.add(TOO_MANY, (absent or known).popitem()[0])
        return list(known), list(absent)


def _position(proposal: Any, points: int, refusals: Refusals) -> int | None:
    """The index of the point that an update names, None (and refused) where there is no such point."""
    at = number(proposal.get("point")) if isinstance(proposal, dict) else None
    if at is None:
        refusals.add(WRONG_FORM, proposal)
    elif not 1 <= at <= points:
        refusals.add(NO_POINT, at)
    else:
        return at - 1
    return None


def _positions(proposal: Any, points: int, refusals: Refusals) -> list[int]:
    if not isinstance(proposal, dict):
        refusals.add(WRONG_FORM, proposal)
        return []
    found: dict[int, None] = {}
    for each in _list(proposal, "points", refusals):
        at = number(each)
        if at is None or not 1 <= at <= points:
            refusals.add(NO_POINT, each)
        else:
            found[at - 1] = None
    return list(found)


def _description(proposal: Any) -> str:
    text = proposal.get("description") if isinstance(proposal, dict) else None
    return writable(" ".join(text.split())[:MOST_CHARS]) if isinstance(text, str) else ""


def _passages(proposal: dict[str, Any], material: Material, refusals: Refusals) -> list[str]:
    """Ids of the passages that the proposal rests on, each once; numbers that were not shown are refused."""
    found: dict[str, None] = {}
    for each in _list(proposal, "passages", refusals):
        at = number(each)
        if at is None or not 1 <= at <= len(material.passages):
            refusals.add(NO_PASSAGE_NUMBER, each)
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
    """Each once, in the order they come."""
    return tuple(dict.fromkeys(id for each in ids for id in each))
