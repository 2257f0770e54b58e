"""The toy example, step by step: the trace says what was looked for, what was found, and what the memory was after it."""

from memory.answering.working_memory.deep_answer import DeepAnswer
from memory.answering.working_memory.inquiries import Concern
from memory.answering.working_memory.points import MemoryPoint, WorkingMemory
from memory.answering.working_memory.trace import AnswerGrew, DeepEvent, DeepSettings, PointChange, Refusal
from store.store import Store
from store.types import passage_id
from tests.memory.answering.working_memory.prompt_reader import Prompt
from tests.memory.answering.working_memory.replay import replay_step
from tests.memory.answering.working_memory.toy import FORGED, HEIR, OATH, PAID, PASSAGES, QUESTION, SOLD, WHOLE
from tests.memory.llm.model_server import Call

SETTINGS = DeepSettings(quick=True, steps=2, entities=3, triples=10, passages=2)
INHERITED = "Who inherited the workshop of Edda Vance?"
KEPT = "Which wardens keep the flame?"
PAYS = "Who pays for the flame of the wardens?"


def plays() -> tuple[list[str], object]:
    """The model's part. Returns the purposes that it was asked for, as they come, and the script."""
    heard: list[str] = []

    def script(call: Call) -> object:
        heard.append(call.purpose)
        prompt = Prompt(call)
        turn = heard.count(call.purpose)
        if call.purpose == "judge" and turn == 1:
            return {
                "enough": False,
                "concerns": [
                    {"concern": "Who came after the smith?", "point": prompt.points[FORGED], "subquery": INHERITED},
                    {"concern": "Who keeps the light?", "point": 0, "subquery": KEPT},
                    {"concern": "What of the ninth point?", "point": 9, "subquery": "What is the ninth?"},
                ],
            }
        if call.purpose == "judge":
            concern = {"concern": "What does the flame cost?", "point": prompt.points[OATH], "subquery": PAYS}
            return {"enough": False, "concerns": [concern]}
        if call.purpose == "evolve" and turn == 1:
            forged = prompt.insert(FORGED, ["tower lantern"], ["Lantern"], ("Edda Vance", "Corl Tower"))
            return {
                "updates": [],
                "inserts": [forged, prompt.insert(SOLD, ["corl tower"], ["Sale"], ("Brandel family",))],
            }
        if call.purpose == "evolve" and turn == 2:
            oath = prompt.insert(OATH, ["wardens", "flame"], ["Oath"], ("The Long Watch",))
            oath["entities"].append(99)
            return {
                "updates": [
                    prompt.update(FORGED, HEIR, ["Workshop"]),
                    {"point": 9, "description": "There is no ninth point.", "passages": [1]},
                ],
                "inserts": [
                    oath,
                    {"description": "Nothing supports this.", "entities": [1], "names": [], "passages": []},
                    {"description": "This is about nobody.", "entities": [], "names": [], "passages": [1]},
                    {"description": "Tea grows there.", "entities": [], "names": ["Terraces of Sarn"], "passages": [1]},
                ],
            }
        if call.purpose == "evolve":
            return {"updates": [], "inserts": [prompt.insert(PAID, ["flame", "ottilie"], ["Ledger"])]}
        if call.purpose == "merge" and turn == 3:
            return {"merges": [{"points": [prompt.points[OATH], prompt.points[PAID], 77], "description": WHOLE}]}
        if call.purpose == "merge":
            return {"merges": []}
        paid = {"text": "Ottilie pays for it.", "sources": [prompt.passages["Ledger"], 99]}
        oath = {"text": "The wardens swore to keep the flame alight.", "sources": [prompt.passages["Oath"]]}
        return {"found": True, "sentences": [oath, paid], "short": "its wardens are sworn and paid"}

    return heard, script


def id_of(title: str) -> str:
    return passage_id(title, PASSAGES[title][0])


P1 = MemoryPoint("p1", FORGED, ("corl tower", "edda vance", "tower lantern"), (id_of("Lantern"),))
P2 = MemoryPoint("p2", SOLD, ("brandel family", "corl tower"), (id_of("Sale"),))
P1_LATER = MemoryPoint("p1", HEIR, P1.entities, (id_of("Lantern"), id_of("Workshop")))
P3 = MemoryPoint("p3", OATH, ("flame", "the long watch", "wardens"), (id_of("Oath"),), absent=("the long watch",))
P4 = MemoryPoint("p4", PAID, ("flame", "ottilie"), (id_of("Ledger"),))
P5 = MemoryPoint(
    "p5",
    WHOLE,
    ("flame", "ottilie", "the long watch", "wardens"),
    (id_of("Oath"), id_of("Ledger")),
    absent=("the long watch",),
)


def entities(answer: DeepAnswer, step: int) -> list[list[str]]:
    return [sorted(e.phrase for e in inquiry.entities) for inquiry in answer.trace.steps[step - 1].inquiries]


def passages(answer: DeepAnswer, step: int) -> list[list[str]]:
    return [[p.title for p in inquiry.passages] for inquiry in answer.trace.steps[step - 1].inquiries]


def test_the_trace_of_the_toy_example_step_by_step(ask, toy: Store) -> None:
    heard, script = plays()
    told: list[DeepEvent] = []
    answer = ask(QUESTION, script, SETTINGS, on_event=told.append)
    assert heard == ["evolve", "merge", "judge", "evolve", "merge", "judge", "evolve", "merge", "answer"]
    first, second, third = answer.trace.steps
    assert (answer.trace.question, answer.trace.commit) == (QUESTION, toy.snapshot().commit)

    assert first.before == WorkingMemory()
    assert first.concerns == (Concern(QUESTION, QUESTION),)
    assert first.inquiries[0].candidates == 11  # all phrases of the graph
    assert entities(answer, 1) == [["corl tower", "tower lantern", "wardens"]]
    assert passages(answer, 1) == [["Lantern", "Sale"]]
    assert first.changes == (PointChange("inserted", P1), PointChange("inserted", P2))
    assert first.after == WorkingMemory((P1, P2), made=2)
    assert first.refused == ()

    assert second.before == first.after
    assert second.concerns == (
        Concern("Who came after the smith?", INHERITED, "p1"),
        Concern("Who keeps the light?", KEPT),
    )
    assert [concern.kind for concern in second.concerns] == ["local", "global"]
    # Around p1: what its three entities are linked with, and each other; of the rest: what is in no point.
    assert second.inquiries[0].candidates == len(
        {"corl tower", "edda vance", "tower lantern", "joss merin", "brandel family"}
    )
    assert second.inquiries[1].candidates == 11 - 4
    assert entities(answer, 2) == [["corl tower", "edda vance", "joss merin"], ["flame", "tea", "wardens"]]
    assert second.changes == (PointChange("updated", P1_LATER, (P1,)), PointChange("inserted", P3))
    assert second.after == WorkingMemory((P1_LATER, P2, P3), made=3)
    assert [(r.purpose, r.why) for r in second.refused] == [
        ("judge", "no such point"),
        ("evolve", "no such point"),
        ("evolve", "no such entity"),
        ("evolve", "no passage"),
        ("evolve", "no entity"),
        ("evolve", "not retrieved"),
        ("evolve", "no entity"),
    ]
    assert second.refused[0] == Refusal("judge", "no such point", "9")
    assert second.held == ("terraces of sarn",)

    assert third.concerns == (Concern("What does the flame cost?", PAYS, "p3"),)
    # "the long watch" is nothing that the graph has, but the memory joins it with the others.
    assert third.inquiries[0].candidates == len({"flame", "wardens", "ottilie", "ledger"})
    assert entities(answer, 3) == [["flame", "ottilie", "wardens"]]
    assert third.changes == (PointChange("inserted", P4), PointChange("merged", P5, (P3, P4)))
    assert set(P5.entities) == {*P3.entities, *P4.entities}
    assert set(P5.passages) == {*P3.passages, *P4.passages}
    assert third.after == WorkingMemory((P1_LATER, P2, P5), made=5)
    assert [(r.purpose, r.why) for r in third.refused] == [("merge", "no such point")]

    assert answer.trace.memory == third.after
    assert answer.stopped == "steps"
    assert answer.found
    assert answer.written
    assert answer.note is None
    ranks = {each.title: each.rank for each in answer.citations}
    assert ranks.keys() == {"Oath", "Ledger"}
    assert answer.text == (
        f"The wardens swore to keep the flame alight. [{ranks['Oath']}] Ottilie pays for it. [{ranks['Ledger']}]"
    )
    assert {each.points for each in answer.citations} == {("p5",)}

    assert [event.kind for event in told if event.kind != "writing"] == [
        *("began", "judged", "found", "changed", "changed"),
        *("began", "judged", "found", "found", "changed", "changed"),
        *("began", "judged", "found", "changed", "changed"),
        "answering",
    ]
    assert isinstance(told[-1], AnswerGrew) and told[-1].text == answer.text


def test_entity_absent_from_the_graph_is_marked_and_not_stored(ask, toy: Store) -> None:
    before = toy.snapshot()
    answer = ask(QUESTION, plays()[1], SETTINGS)
    assert answer.trace.memory.points[-1].absent == ("the long watch",)
    after = toy.snapshot()
    assert after.commit == before.commit
    assert after.phrase_row("the long watch") is None


def test_every_step_can_be_replayed_from_its_record_and_retrieved_again(ask, toy: Store) -> None:
    from memory.answering.working_memory.subquery_retrieval import inquire
    from tests.memory.answering.working_memory.toy import ENCODER

    answer = ask(QUESTION, plays()[1], SETTINGS)
    snapshot = toy.snapshot()
    for step in answer.trace.steps:
        assert replay_step(step, QUESTION, SETTINGS) == step
        again = replay_step(
            step, QUESTION, SETTINGS, lambda memory, concern: inquire(snapshot, ENCODER, memory, concern, SETTINGS)
        )
        assert again == step


def test_the_same_question_gives_the_same_trace(ask) -> None:
    def bare(answer: DeepAnswer) -> list[tuple[object, ...]]:
        return [(s.concerns, s.inquiries, s.changes, s.refused, s.after) for s in answer.trace.steps]

    assert bare(ask(QUESTION, plays()[1], SETTINGS)) == bare(ask(QUESTION, plays()[1], SETTINGS))
