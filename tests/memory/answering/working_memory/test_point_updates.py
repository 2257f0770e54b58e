"""Whatever a model proposes, points keep what they promise: entities, passages, unions; and what was not taken is counted."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.answering.working_memory.inquiries import FoundPassage
from memory.answering.working_memory.judgement import read_judgement
from memory.answering.working_memory.point_updates import MAX_POINTS, apply_evolution, apply_merges
from memory.answering.working_memory.points import MemoryPoint, WorkingMemory
from memory.answering.working_memory.prompts import Material
from memory.answering.working_memory.trace import DeepSettings
from memory.llm.errors import BadAnswer

GRAPH = [f"phrase {n}" for n in range(12)]
QUICK = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 20) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
NUMBERS = st.lists(st.integers(-1, 9) | JSON, max_size=5)
TEXT = st.text(max_size=20) | JSON
NAMES = st.lists(st.sampled_from([*GRAPH, "PHRASE 3!", "unheard of", "", "…", "x" * 500]) | JSON, max_size=4)
UPDATE = st.fixed_dictionaries(
    {"point": st.integers(-1, 6) | JSON}, optional={"description": TEXT, "passages": NUMBERS}
)
INSERT = st.fixed_dictionaries(
    {}, optional={"description": TEXT, "entities": NUMBERS, "names": NAMES, "passages": NUMBERS}
)
EVOLUTION = st.fixed_dictionaries(
    {"updates": st.lists(UPDATE | JSON, max_size=4), "inserts": st.lists(INSERT | JSON, max_size=5)}
)
MERGE = st.fixed_dictionaries({}, optional={"points": NUMBERS, "description": TEXT})
MERGES = st.fixed_dictionaries({"merges": st.lists(MERGE | JSON, max_size=4)})


@st.composite
def memories(draw: st.DrawFn) -> WorkingMemory:
    points = []
    for number in range(draw(st.integers(0, 5))):
        absent = draw(st.sampled_from([(), ("missing",)]))
        inside = draw(st.lists(st.sampled_from(GRAPH), min_size=1, max_size=4, unique=True))
        passages = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True))
        points.append(
            MemoryPoint(f"p{number + 1}", f"point {number}", tuple(sorted({*inside, *absent})), tuple(passages), absent)
        )
    return WorkingMemory(tuple(points), len(points))


@st.composite
def materials(draw: st.DrawFn) -> Material:
    entities = draw(st.lists(st.sampled_from(GRAPH[:8]), max_size=5, unique=True))
    ids = draw(st.lists(st.sampled_from("uvwxyz"), max_size=4, unique=True))
    inside = draw(st.lists(st.sampled_from(GRAPH), max_size=3, unique=True))
    return Material(tuple(entities), (), tuple(FoundPassage(id, id, "text", 0.5, tuple(inside)) for id in ids))


def held(phrase: str) -> bool:
    return phrase in GRAPH


def sound(memory: WorkingMemory) -> None:
    """What every memory promises."""
    for point in memory.points:
        assert point.description.strip()
        assert set(point.entities) - set(point.absent), "a point without an entity of the graph"
        assert set(point.absent) <= set(point.entities)
        assert point.passages, "a point without a passage"
        assert len(set(point.entities)) == len(point.entities)
        assert len(set(point.passages)) == len(point.passages)
    ids = [point.id for point in memory.points]
    assert len(set(ids)) == len(ids)
    assert all(int(id[1:]) <= memory.made for id in ids)


@pytest.mark.slow
@QUICK
@given(memories(), materials(), EVOLUTION)
def test_updates_and_inserts_keep_the_invariants_of_points(
    memory: WorkingMemory, material: Material, value: Any
) -> None:
    evolution = apply_evolution(memory, material, value, DeepSettings(), held)
    sound(evolution.memory)
    after = {point.id: point for point in evolution.memory.points}
    shown = {passage.id for passage in material.passages}
    known = {*material.entities, *material.phrases, *memory.vertices}
    for before in memory.points:
        now = after[before.id]
        assert (now.entities, now.absent) == (before.entities, before.absent)
        assert now.passages[: len(before.passages)] == before.passages
        assert set(now.passages) - set(before.passages) <= shown
        assert (now == before) == all(change.point.id != before.id for change in evolution.changes)
    for change in evolution.changes:
        if change.kind == "updated":
            assert change.before == (memory.point(change.point.id),)
        else:
            assert (change.kind, change.before) == ("inserted", ())
            assert set(change.point.passages) <= shown
            assert set(change.point.entities) - set(change.point.absent) <= known
            assert not any(held(name) for name in change.point.absent)
        assert after[change.point.id] == change.point
    assert all(refused.purpose == "evolve" and refused.why for refused in evolution.refused)


@pytest.mark.slow
@QUICK
@given(memories(), materials(), EVOLUTION)
def test_every_proposed_change_is_applied_or_listed_as_refused(
    memory: WorkingMemory, material: Material, value: Any
) -> None:
    for name in ("updates", "inserts"):
        for proposal in value[name]:
            alone = apply_evolution(memory, material, {name: [proposal]}, DeepSettings(), held)
            assert len(alone.changes) == 1 or alone.refused


@pytest.mark.slow
@QUICK
@given(memories(), materials(), EVOLUTION)
def test_without_updates_no_point_changes(memory: WorkingMemory, material: Material, value: Any) -> None:
    evolution = apply_evolution(memory, material, value, DeepSettings(update=False), held)
    assert evolution.memory.points[: len(memory.points)] == memory.points
    assert sum(refused.why == "switched off" for refused in evolution.refused) == len(value["updates"])


@QUICK
@given(memories(), MERGES)
@pytest.mark.slow
def test_a_merged_point_is_the_union_of_its_points(memory: WorkingMemory, value: Any) -> None:
    evolution = apply_merges(memory, value)
    sound(evolution.memory)
    merged: set[str] = set()
    for change in evolution.changes:
        assert change.kind == "merged"
        assert len(change.before) >= 2
        assert set(change.point.entities) == {e for point in change.before for e in point.entities}
        assert set(change.point.absent) == {e for point in change.before for e in point.absent}
        assert set(change.point.passages) == {id for point in change.before for id in point.passages}
        assert memory.point(change.point.id) is None
        ids = {point.id for point in change.before}
        assert not ids & merged, "a point was merged twice"
        merged |= ids
    left = [point for point in memory.points if point.id not in merged]
    assert {p.id for p in evolution.memory.points} == {p.id for p in left} | {c.point.id for c in evolution.changes}
    assert [p for p in evolution.memory.points if memory.point(p.id)] == left
    assert evolution.memory.vertices == memory.vertices
    for proposal in value["merges"]:
        alone = apply_merges(memory, {"merges": [proposal]})
        assert len(alone.changes) == 1 or alone.refused


@QUICK
@given(
    memories(),
    st.fixed_dictionaries(
        {
            "enough": st.booleans() | JSON,
            "concerns": st.lists(
                st.fixed_dictionaries(
                    {}, optional={"concern": TEXT, "subquery": TEXT, "point": st.integers(-1, 7) | JSON}
                )
                | JSON,
                max_size=6,
            ),
        }
    ),
    st.sampled_from([None, "local", "global"]),
)
@pytest.mark.slow
def test_concerns_name_only_existing_points(memory: WorkingMemory, value: Any, only: Any) -> None:
    said = read_judgement(value, memory, ["asked before"], DeepSettings(only=only))
    assert said.enough is (value["enough"] is True)
    assert len(said.concerns) <= 3
    for concern in said.concerns:
        assert concern.subquery.strip()
        assert concern.subquery != "asked before"
        assert concern.point is None or memory.point(concern.point) is not None
        assert only is None or concern.kind == only
    if not said.enough:
        assert len(said.concerns) + len(said.refused) == len(value["concerns"])


@QUICK
@given(memories(), materials(), JSON)
@pytest.mark.slow
def test_any_other_json_is_a_bad_answer_or_changes_nothing(
    memory: WorkingMemory, material: Material, value: Any
) -> None:
    for read in (
        lambda: apply_evolution(memory, material, value, DeepSettings(), held),
        lambda: apply_merges(memory, value),
        lambda: read_judgement(value, memory, [], DeepSettings()),
    ):
        try:
            result = read()
        except BadAnswer as error:
            assert error.kind == "wrong schema"
        else:
            assert not getattr(result, "changes", ())


MATERIAL = Material(("phrase 1", "phrase 2"), (), (FoundPassage("u", "U", "text", 0.5, ("phrase 5",)),))
ONE = WorkingMemory((MemoryPoint("p1", "one", ("phrase 0",), ("a",)),), 1)


def insert(**more: Any) -> dict[str, Any]:
    return {"inserts": [{"description": "new", "entities": [1], "names": [], "passages": [1]} | more]}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (insert(entities=[3]), ["no such entity", "no entity"]),
        (insert(entities=[0]), ["no such entity", "no entity"]),
        (insert(entities=[], names=["nowhere"]), ["no entity"]),
        (insert(passages=[2]), ["no such passage", "no passage"]),
        (insert(passages=[]), ["no passage"]),
        (insert(description=" "), ["no description"]),
        (insert(description="one"), ["twice"]),
        (insert(names=["Phrase 9"]), ["not retrieved"]),
        (insert(entities="1"), ["wrong form", "no entity"]),
        ({"updates": [{"point": 2, "description": "x", "passages": []}]}, ["no such point"]),
        ({"updates": [{"point": True, "description": "x", "passages": []}]}, ["wrong form"]),
        ({"updates": [{"point": 1, "description": "", "passages": []}]}, ["no description"]),
        ({"updates": [{"point": 1, "description": "x"}, {"point": 1, "description": "y"}]}, ["twice"]),
    ],
)
def test_refused_changes_state_their_reason(value: Any, why: list[str]) -> None:
    evolution = apply_evolution(ONE, MATERIAL, value, DeepSettings(), held)
    assert [refused.why for refused in evolution.refused] == why


def test_names_match_retrieved_phrases_or_are_marked_absent() -> None:
    evolution = apply_evolution(
        ONE, MATERIAL, insert(entities=["2"], names=["Phrase 5", "PHRASE-0", "Nowhere"]), DeepSettings(), held
    )
    (change,) = evolution.changes
    assert change.point == MemoryPoint(
        "p2", "new", ("nowhere", "phrase 0", "phrase 2", "phrase 5"), ("u",), absent=("nowhere",)
    )


def test_number_of_points_is_limited() -> None:
    many = [insert(description=f"new {n}")["inserts"][0] for n in range(MAX_POINTS + 5)]
    evolution = apply_evolution(ONE, MATERIAL, {"inserts": many}, DeepSettings(), held)
    assert len(evolution.memory.points) == MAX_POINTS
    assert [refused.why for refused in evolution.refused] == ["too many"] * 6


def test_working_memory_lists_its_vertices_and_their_neighbours() -> None:
    memory = WorkingMemory(
        (
            MemoryPoint("p1", "d", ("a", "b"), ("x",)),
            MemoryPoint("p2", "d", ("b", "c"), ("x",)),
            MemoryPoint("p3", "d", ("e",), ("x",)),
        ),
        3,
    )
    assert memory.vertices == ("a", "b", "c", "e")
    assert memory.neighbours(["b"]) == {"a", "c"}
    assert memory.neighbours(["a", "b"]) == {"a", "b", "c"}
    assert memory.neighbours(["e"]) == frozenset()
    assert memory.entities_a_point == pytest.approx(5 / 3)
    assert WorkingMemory().entities_a_point == 0.0
