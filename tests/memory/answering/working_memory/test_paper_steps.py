"""HGMem's steps as the paper counts and makes them: t = 0 is the question itself, four retrievals by default, the judge first,
then a call for the subquery of each concern, all of one kind; with both pairs of ablations.

The story is the toy example of the paper's appendix (F in the third version, figure 4, "Why is Xodar given to Carter as a
slave?"): the points, their entities and the merging are as the figure gives them. The figure names no passages and no
subqueries of its own; the passages here say what its points say, and the first two subqueries are those of its case
study (table 8), shortened.
"""

from typing import Any

import pytest

from memory.answering.working_memory.deep_answer import DeepAnswer
from memory.answering.working_memory.inquiries import Concern
from memory.answering.working_memory.judgement import read_concerns, read_subquery, with_subqueries
from memory.answering.working_memory.points import MemoryPoint, WorkingMemory
from memory.answering.working_memory.trace import DeepSettings, trace_to_json
from memory.llm.errors import BadAnswer
from store.store import Store
from tests.memory.answering.working_memory.conftest import keep
from tests.memory.answering.working_memory.prompt_reader import Prompt
from tests.memory.answering.working_memory.replay import every_call, replay_step, trace_from_json
from tests.memory.answering.working_memory.toy import ENCODER
from tests.memory.llm.model_server import Call, Text

QUESTION = "Why is Xodar given to Carter as a slave?"
INCIDENT = "What specific incident of Xodar was considered a disgrace to the Immortal Race?"
ROLE = "What role does Carter have in the decision to give Xodar to him as a slave?"
PASSAGES = {
    "Issus": (
        "Issus punished Xodar by a cowardly injustice. Issus degrades Xodar for his disgrace; degradation makes him a slave.",
        [
            ("issus", "punished", "xodar"),
            ("xodar", "suffers", "cowardly injustice"),
            ("issus", "orders", "degradation"),
        ],
    ),
    "Blacks": (
        "The noble blacks revile Xodar. Thurid challenges Xodar.",
        [("noble blacks", "revile", "xodar"), ("thurid", "challenges", "xodar")],
    ),
    "Defeat": (
        "John Carter defeated Xodar, which shamed the Immortal Race.",
        [("john carter", "defeated", "xodar"), ("john carter", "shamed", "immortal race")],
    ),
    "Ship": ("A ship sails the lost sea.", [("ship", "sails", "lost sea")]),
}
PUNISHED = "Xodar is punished by Issus as a form of cowardly injustice for the disgrace brought upon the Immortal Race."
DEGRADED = "Issus degrades Xodar to a rank below the lowest; he is forever a slave of slaves."
HOSTILE = "The Noble Blacks exhibit hostility towards Xodar; Thurid is suggested as a challenge for him."
WHOLE = "Xodar's degradation into a slave is a result of his disgraceful defeat by John Carter."
SHIP = "A ship sails the lost sea."


@pytest.fixture(scope="module")
def xodar(tmp_path_factory: pytest.TempPathFactory):
    with Store(tmp_path_factory.mktemp("xodar") / "store", ENCODER.identity) as store:
        keep(store, PASSAGES)
        yield store.snapshot()


def plays(heard: list[str]):
    """The model's part over four steps: concerns beyond the points at t = 1, about a point at t = 2, none more at t = 3."""

    def script(call: Call) -> object:
        heard.append(call.purpose)
        prompt, turn = Prompt(call), heard.count(call.purpose)
        if call.purpose == "judge" and turn == 1:
            beyond = [{"concern": "What disgrace?", "point": 0}, {"concern": "What role has Carter?", "point": 0}]
            return {"enough": False, "about": "beyond", "concerns": [*beyond, {"concern": "More of it?", "point": 1}]}
        if call.purpose == "judge":
            about = {"concern": f"How does it go on, {turn}?", "point": 1}
            return {"enough": False, "about": "points", "concerns": [about, {"concern": "Else?", "point": 0}]}
        if call.purpose == "subquery":
            return {"subquery": (INCIDENT, ROLE, "Who punished Xodar?", "Who defeated Xodar in the end?")[turn - 1]}
        if call.purpose == "evolve" and turn == 1:
            return {
                "updates": [],
                "inserts": [
                    prompt.insert(PUNISHED, ["xodar", "issus", "cowardly injustice"], ["Issus"]),
                    prompt.insert(DEGRADED, ["xodar", "issus", "degradation"], ["Issus"]),
                    prompt.insert(HOSTILE, ["noble blacks", "xodar", "thurid"], ["Blacks"]),
                ],
            }
        if call.purpose == "evolve" and turn == 2:
            update = prompt.update(PUNISHED, f"{PUNISHED} Carter defeated him.", ["Defeat"])
            return {"updates": [update], "inserts": []}
        if call.purpose == "evolve":
            return {"updates": [], "inserts": []}
        if call.purpose == "merge" and turn == 2:
            return {"merges": [{"points": [1, 2], "description": WHOLE}]}
        if call.purpose == "merge":
            return {"merges": []}
        found = "Defeat" in prompt.passages
        return {
            "found": found,
            "sentences": [{"text": f"Answer {heard.count('answer')}.", "sources": [1]}],
            "short": f"defeat {heard.count('answer')}",
        }

    return script


SETTINGS = DeepSettings(entities=9, passages=3)


@pytest.fixture
def four_steps(ask, xodar):
    def run(**changed: Any) -> tuple[DeepAnswer, list[str]]:
        heard: list[str] = []
        settings = DeepSettings(entities=9, passages=3, **changed)
        return ask(QUESTION, plays(heard), settings, snapshot=xodar), heard

    return run


def test_paper_steps_retrieve_the_question_first_and_then_subqueries(four_steps) -> None:
    answer, heard = four_steps()
    steps = answer.trace.steps
    assert [step.number for step in steps] == [0, 1, 2, 3]
    assert [[c.subquery for c in step.concerns] for step in steps] == [
        [QUESTION],
        [INCIDENT, ROLE],
        ["Who punished Xodar?"],
        ["Who defeated Xodar in the end?"],
    ]
    assert [[c.kind for c in step.concerns] for step in steps] == [["global"], ["global"] * 2, ["local"], ["local"]]
    # The judge comes before the subqueries of its step, and each concern has a call of its own.
    assert heard == [
        *("evolve", "merge"),
        *("judge", "subquery", "subquery", "evolve", "merge"),
        *("judge", "subquery", "evolve"),
        *("judge", "subquery", "evolve"),
        "answer",
    ]
    assert (answer.requests, answer.stopped) == (14, "steps")
    assert [len(step.worded) for step in steps] == [0, 2, 1, 1]
    # A step has concerns of one kind: that of the other kind is refused.
    assert [(r.purpose, r.why) for r in steps[1].refused] == [("judge", "another kind")]


def test_points_after_each_step_equal_the_figure_of_the_paper(four_steps) -> None:
    answer, _ = four_steps()
    memory_1, memory_2 = answer.trace.steps[0].after, answer.trace.steps[1].after
    assert [(point.description, point.entities) for point in memory_1.points] == [
        (PUNISHED, ("cowardly injustice", "issus", "xodar")),
        (DEGRADED, ("degradation", "issus", "xodar")),
        (HOSTILE, ("noble blacks", "thurid", "xodar")),
    ]
    # "Point I" after iteration 1: the union of the entities of points I and II; point III stays, as "Point II".
    assert [(point.description, point.entities) for point in memory_2.points] == [
        (WHOLE, ("cowardly injustice", "degradation", "issus", "xodar")),
        (HOSTILE, ("noble blacks", "thurid", "xodar")),
    ]
    # Table 3's measure: 4 and 3 entities in two points.
    assert answer.trace.memory.entities_a_point == 3.5


def test_settings_merge_and_update_can_be_switched_off(four_steps) -> None:
    apart, heard = four_steps(merge=False)
    assert "merge" not in heard
    assert [len(point.entities) for point in apart.trace.memory.points] == [3, 3, 3]
    assert apart.trace.memory.entities_a_point == 3.0
    plain, _ = four_steps(update=False)
    assert [change.kind for step in plain.trace.steps for change in step.changes] == ["inserted"] * 3
    assert [r.why for step in plain.trace.steps for r in step.refused].count("switched off") == 1


@pytest.mark.parametrize(("only", "asked"), [("local", [0, 1, 1, 1]), ("global", [1, 3, 2, 2])])
def test_setting_only_limits_paper_steps_to_local_or_global_concerns(ask, xodar, only: str, asked: list[int]) -> None:
    """Of the scripted concerns (two beyond and one about a point, then one of each kind twice) local takes those about a point,
    global all, as concerns beyond; t = 0 is always the question."""
    heard: list[str] = []
    play = plays(heard)

    def script(call: Call) -> object:
        if call.purpose == "subquery":
            heard.append("subquery")
            return {"subquery": f"What about {len(heard)}?"}
        return play(call)

    answer = ask(QUESTION, script, DeepSettings(entities=9, passages=3, only=only), snapshot=xodar)  # type: ignore[arg-type]
    kinds = [[concern.kind for concern in step.concerns] for step in answer.trace.steps]
    assert kinds[0] == ["global"]
    assert all(kind == only for step in kinds[1:] for kind in step)
    assert [len(step) for step in kinds][1:] == asked[1:]


def test_each_step_setting_gives_an_answer_after_every_step(four_steps) -> None:
    answer, heard = four_steps(each_step=True)
    assert [step.answer and step.answer.short for step in answer.trace.steps] == [
        "defeat 1",
        "defeat 2",
        "defeat 3",
        None,
    ]
    assert (answer.short, heard.count("answer")) == ("defeat 4", 4)
    assert answer.requests == 17


def test_forced_steps_continue_although_the_judge_has_enough(ask, xodar) -> None:
    heard: list[str] = []
    play = plays(heard)

    def script(call: Call) -> object:
        said = play(call)
        if call.purpose == "judge":
            assert ("If they are, set" in str(call.body["messages"][0]["content"])) is not forced
            return {"enough": True, "concerns": []}
        return said

    forced = False
    answer = ask(QUESTION, script, DeepSettings(entities=9, passages=3, steps=5), snapshot=xodar)
    # t = 0 needs no judge; the judge of t = 1 ends the steps.
    assert (len(answer.trace.steps), answer.stopped) == (2, "enough")
    forced, heard[:] = True, []
    answer = ask(QUESTION, script, DeepSettings(entities=9, passages=3, steps=5, forced=True), snapshot=xodar)
    # Six turns: t = 0 to 5, with a judge in all but the first.
    assert (len(answer.trace.steps), answer.stopped, heard.count("judge")) == (6, "steps", 5)
    trace = trace_from_json(trace_to_json(answer.trace))
    assert [replay_step(step, QUESTION, trace.settings) for step in trace.steps] == list(trace.steps)


def test_trace_is_complete_and_each_step_can_be_replayed(four_steps) -> None:
    answer, _ = four_steps(each_step=True)
    trace = trace_from_json(trace_to_json(answer.trace))
    assert trace == answer.trace
    assert [replay_step(step, QUESTION, trace.settings) for step in trace.steps] == list(trace.steps)
    assert sum(call.requests for call in every_call(trace)) == answer.requests


def test_entities_and_triples_are_described_by_unshown_sentences(ask, xodar) -> None:
    prompts: list[str] = []
    play = plays([])

    def script(call: Call) -> object:
        if call.purpose == "evolve":
            prompts.append(str(call.body["messages"][-1]["content"]))
            return {"updates": [], "inserts": []}
        return play(call)

    answer = ask(QUESTION, script, DeepSettings(steps=0, passages=1), snapshot=xodar)
    [inquiry] = answer.trace.steps[0].inquiries
    told = {entity.phrase: entity.description for entity in inquiry.entities}
    assert told["thurid"] == "Thurid challenges Xodar."
    assert told["noble blacks"] == "The noble blacks revile Xodar."
    triples = {(t.subject, t.object): t.description for t in inquiry.triples}
    assert triples["john carter", "xodar"] == PASSAGES["Defeat"][0]
    shown = inquiry.passages[0].text
    described = [each for each in {*told.values(), *triples.values()} if each]
    assert [each for each in described if each in shown], "a passage that is shown tells of some"
    for sentence in described:
        assert (f"\n   {sentence}" in prompts[0]) is (sentence not in shown)


def test_failed_subquery_drops_only_its_own_concern(ask, xodar) -> None:
    heard: list[str] = []
    play = plays(heard)

    def script(call: Call) -> object:
        said = play(call)
        # Both tries of the first concern's subquery are of no use.
        return Text("Hm.") if call.purpose == "subquery" and heard.count("subquery") <= 2 else said

    answer = ask(QUESTION, script, DeepSettings(steps=1, entities=9, passages=3), snapshot=xodar)
    assert answer.stopped == "steps"
    assert [concern.text for concern in answer.trace.steps[1].concerns] == ["What role has Carter?"]
    assert "1 of 2 subqueries of step 1 could not be written" in (answer.note or "")
    assert replay_step(answer.trace.steps[1], QUESTION, answer.trace.settings) == answer.trace.steps[1]


def test_steps_end_if_every_subquery_fails(ask, xodar) -> None:
    play = plays([])
    script = lambda call: Text("Hm.") if call.purpose == "subquery" else play(call)  # noqa: E731
    answer = ask(QUESTION, script, DeepSettings(entities=9, passages=3), snapshot=xodar)
    assert (answer.stopped, len(answer.trace.steps)) == ("model", 2)
    assert answer.text


OTHER = "another kind"
MEMORY = WorkingMemory((MemoryPoint("p1", "One.", ("a",), ("x",)), MemoryPoint("p4", "Four.", ("b",), ("x",))), 4)


@pytest.mark.parametrize(
    ("said", "concerns", "why"),
    [
        ({"about": "points", "concerns": [{"concern": "c", "point": 2}]}, [Concern("c", "", "p4")], []),
        (
            {"concerns": [{"concern": "c", "point": 2}, {"concern": "d", "point": 0}]},
            [Concern("c", "", "p4")],
            ["another kind"],
        ),
        ({"concerns": [{"concern": "c"}, {"concern": "d", "point": 1}]}, [Concern("c", "")], ["another kind"]),
        ({"about": "points", "concerns": [{"concern": "c", "point": 3}]}, [], ["no such point"]),
        ({"about": "beyond", "concerns": [7, {"point": 0}, {"concern": "c", "point": "x"}]}, [], ["wrong form"] * 3),
        (
            {"concerns": [{"concern": f"c{n}"} for n in range(5)]},
            [Concern(f"c{n}", "") for n in range(3)],
            ["too many"] * 2,
        ),
    ],
)
def test_accepted_concerns_of_one_judgement_are_of_one_kind(said, concerns, why) -> None:
    judged = read_concerns({"enough": False, **said}, MEMORY, DeepSettings())
    assert (list(judged.concerns), [refused.why for refused in judged.refused]) == (concerns, why)


def test_repeated_and_missing_subqueries_are_refused() -> None:
    concerns = [Concern("a", ""), Concern("b", ""), Concern("c", "")]
    kept, refused = with_subqueries(concerns, ["Who?", None, "who "], ["What?"])
    assert kept == (Concern("a", "Who?"),)
    assert [each.why for each in refused] == ["no subquery", "twice"]
    with pytest.raises(BadAnswer):
        read_subquery({"subquery": " "})
