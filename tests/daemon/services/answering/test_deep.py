"""`ask --deep` through the daemon: streamed, traced, within its budget, on one commit, and whatever the model does."""

import json
import os
import pty
import subprocess
import time
from typing import Any

import pytest

from tests.daemon.services.answering.conftest import Asking, documents
from tests.e2e.real_hippod import clean_environment
from tests.memory.answering.working_memory.replay import every_call, replay_step, trace_from_json
from tests.memory.answering.working_memory.scripted_model import playing
from tests.memory.answering.working_memory.toy import QUESTION
from tests.memory.llm.model_server import Drop, Hang, Status, Text

pytestmark = pytest.mark.daemon

WORDS = ("Step 0", "inserted", "Step 1", "local p", "merged of")


def test_deep_answer_contains_a_trace_that_replays_each_step(asking: Asking) -> None:
    answer = asking.ask(playing(), deep=True)
    trace = trace_from_json(answer)
    assert [step.number for step in trace.steps] == [0, 1, 2, 3]
    assert [len(step.worded) for step in trace.steps] == [0, 2, 2, 2]
    assert [replay_step(step, trace.question, trace.settings).after for step in trace.steps] == [
        step.after for step in trace.steps
    ]
    assert (answer["answerer"], answer["stopped"], answer["commit"]) == ("deep", "steps", trace.commit)
    assert answer["calls"] == len(asking.purposes) == 18
    assert answer["tokens"]["prompt"] == sum(call.prompt_tokens for call in every_call(trace))
    points = trace.memory.points
    assert answer["entities_a_point"] == round(sum(len(point.entities) for point in points) / len(points), 4)
    [citation] = answer["citations"]
    assert (citation["document"], citation["title"]) == ("added:Lantern", "Lantern")
    assert citation["id"] in {id for point in points for id in point.passages}
    assert set(citation["points"]) == {point.id for point in points if citation["id"] in point.passages}


def test_events_report_each_step_in_order(asking: Asking) -> None:
    asking.model.script = playing()
    events = asking.streamed(deep=True, steps=1)
    kinds = [data["kind"] for name, data in events if name == "step"]
    first = ["began", "judged", "found", "changed", "changed"]
    assert kinds == [*first, "began", "judged", "found", "found", "changed", "changed", "answering"]
    assert [name for name, _ in events][-1] == "answer"
    answer = events[-1][1]
    changed = [data["changes"] for name, data in events if name == "step" and data["kind"] == "changed"]
    assert [change for part in changed for change in part] == [
        each for step in answer["steps"] for each in step["changes"]
    ]


def test_terminal_shows_steps_before_the_answer_is_complete(asking: Asking) -> None:
    """The model says nothing more until the first steps have been read from the terminal."""
    ours, theirs = pty.openpty()
    seen: list[bytes] = []
    play = playing()

    def script(call: Any) -> Any:
        while call.purpose == "answer" and not all(word.encode() in b"".join(seen) for word in WORDS):
            time.sleep(0.01)  # one thread reads the terminal: of two, the later piece may be noted first
        return play(call)

    asking.model.script = script
    environment = clean_environment(asking.daemon.home) | {"TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}
    command = asking.daemon.command("ask", QUESTION, "--deep", "--steps", "1")
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment, cwd=asking.daemon.home)
    os.close(theirs)
    try:
        while piece := os.read(ours, 4096):
            seen.append(piece)
    except OSError:
        pass  # the terminal's other end is closed
    assert process.wait(60) == 0
    text = b"".join(seen).decode().replace("\x1b[0m", "")
    assert text.index("Step 0") < text.index("Step 1") < text.index("It is so. [1]") < text.index("Sources")
    assert "2 steps, " in text


@pytest.mark.parametrize("purpose", ["judge", "subquery", "evolve", "merge", "answer"])
@pytest.mark.parametrize("said", [Status(500), Drop(), Text("no JSON"), {"opinion": 3}], ids=str)
def test_any_model_failure_gives_an_answer_with_a_note_or_an_upstream_error(
    asking: Asking, purpose: str, said: Any
) -> None:
    asking.model.script = playing(lambda call, turn: said if call.purpose == purpose else None)
    answered = asking.post(deep=True)
    if purpose == "evolve":
        # The first call of all: nothing is known, and the same server is asked for the answer from the passages found.
        assert answered.status_code in (200, 502)
    else:
        assert answered.status_code == 200, answered.text
    body = answered.json()
    if answered.status_code == 502:
        assert body["type"] == "urn:hippod:problem:upstream"
        return
    assert body["answer"]
    assert body["note"]
    assert body["written"] is (purpose != "answer")
    shown = {citation["rank"] for citation in body["citations"]}
    assert all(f"[{rank}]" in body["answer"] for rank in shown)


def test_unreachable_model_is_an_upstream_error(asking: Asking) -> None:
    asking.model.stop()
    refused = asking.post(deep=True)
    asking.model.start()
    assert (refused.status_code, "cannot be reached" in refused.json()["detail"]) == (502, True)


def test_budgets_and_ablation_options_apply_to_deep_questions(asking: Asking) -> None:
    answer = asking.ask(playing(), deep=True, max_calls=4)
    assert (answer["stopped"], answer["calls"]) == ("calls", 4)
    assert answer["note"]
    answer = asking.ask(playing(), deep=True, max_tokens=500)
    assert answer["stopped"] == "tokens"
    answer = asking.ask(playing(lambda call, _: Hang() if call.purpose == "judge" else None), deep=True, timeout_s=2.0)
    assert (answer["stopped"], answer["answer"]) == ("seconds", "It is so. [1]")
    asking.model.calls.clear()
    answer = asking.ask(playing(), deep=True, only="global", merge=False, update=False)
    concerns = [concern for step in answer["steps"] for concern in step["concerns"]]
    assert concerns
    assert {concern["point"] for concern in concerns} == {None}
    assert "merge" not in asking.purposes
    assert (answer["settings"]["only"], answer["settings"]["merge"], answer["settings"]["update"]) == (
        "global",
        False,
        False,
    )


def test_quick_each_step_and_deep_settings_apply_to_deep_questions(asking: Asking) -> None:
    quick = asking.ask(playing(), deep=True, quick=True)
    assert (quick["calls"], "subquery" in asking.purposes, quick["settings"]["quick"]) == (12, False, True)
    asking.model.calls.clear()
    chosen = {"n_v": 3, "n_e": 1, "n_d": 2, "answer_passages": 4, "model_temperature": 0.7}
    answer = asking.ask(playing(), deep=True, steps=1, each_step=True, deep_settings=chosen)
    told = {"entities": 3, "triples": 1, "passages": 2, "answer_passages": 4, "temperature": 0.7}
    assert told.items() <= answer["settings"].items()
    assert all(call.body["temperature"] == 0.7 for call in asking.model.calls)
    assert [step["answer"] and step["answer"]["short"] for step in answer["steps"]] == ["so", None]
    for step in answer["steps"]:
        for inquiry in step["inquiries"]:
            assert len(inquiry["entities"]) <= 3 and len(inquiry["passages"]) <= 2
    for name, value in (("quick", True), ("each_step", True), ("deep_settings", {"n_v": 3})):
        refused = asking.post(**{name: value})
        assert (refused.status_code, name in refused.text) == (422, True)
    assert asking.post(deep=True, deep_settings={"n_v": 0}).status_code == 422


def test_deep_question_uses_the_commit_at_its_start(asking: Asking) -> None:
    """Documents come and go before the second step; its citations and what it finds are those of the first."""
    daemon = asking.daemon
    before = daemon.status()["commit"]
    text = f"{QUESTION} The wardens keep the flame of the workshop of Corl Tower."
    new = {
        "id": "A",
        "title": "New",
        "text": text,
        "triples": [["wardens", "keep", "flame"], ["corl tower", "has", "workshop"]],
    }

    def instead(call: Any, turn: int) -> Any:
        if call.purpose == "judge" and turn == 1:
            daemon.ask("DELETE", "/v1/documents", json={"uris": ["added:Lantern"]})
            daemon.add(new)
            daemon.wait()
        return None

    try:
        answer = asking.ask(playing(instead), deep=True)
        assert daemon.status()["commit"] > answer["commit"] == before
        found = {
            each["title"] for step in answer["steps"] for inquiry in step["inquiries"] for each in inquiry["passages"]
        }
        assert "Lantern" in found
        assert "New" not in found
        assert [citation["document"] for citation in answer["citations"]] == ["added:Lantern"]
        later = asking.ask(playing(), deep=True)
        found = {
            each["title"] for step in later["steps"] for inquiry in step["inquiries"] for each in inquiry["passages"]
        }
        assert "New" in found
        assert "Lantern" not in found
    finally:
        daemon.ask("DELETE", "/v1/documents", json={"uris": ["added:A"]})
        daemon.add(*[each for each in documents() if each["id"] == "Lantern"])
        daemon.wait()


def test_a_trace_is_kept_as_a_file_and_printed_with_json(asking: Asking) -> None:
    asking.model.script = playing()
    ran = asking.daemon.ctl("ask", QUESTION, "--deep", "--trace", "t.json", "--json")
    assert ran.code == 0, ran.err
    assert json.loads((asking.daemon.home / "t.json").read_text()) == ran.json
    assert len(ran.json["steps"]) == 4


def test_eval_compares_answerers_and_ablations(asking: Asking) -> None:
    questions = [
        {"question": QUESTION, "documents": ["added:Lantern"], "answer": "so"},
        {"question": "Who pays?", "documents": ["added:Ledger"], "answer": "Ottilie"},
    ]
    (asking.daemon.home / "q.json").write_text(json.dumps(questions))
    asking.model.script = playing(
        lambda call, turn: (
            {"thought": f"T{turn}.", "sources": [], "answers": False} if call.purpose == "thought" else None
        )
    )
    calls = {}
    for answerer, more in (("single", ()), ("iterative", ("--steps", "2")), ("deep", ("--steps", "1", "--no-merge"))):
        said = asking.daemon.ctl_json("eval", "q.json", "--answerer", answerer, *more)["answers"]
        assert (said["n"], said["em"], said["f1"], said["failed"], said["answerer"]) == (2, 0.5, 0.5, 0, answerer)
        assert [each["em"] for each in said["questions"]] == [1.0, 0.0]
        assert said["prompt_tokens"] == sum(each["prompt_tokens"] for each in said["questions"]) > 0
        assert said["took_ms"]["p50"] > 0
        calls[answerer] = said["calls"]
        if answerer == "deep":
            assert said["entities_a_point"] == 1.0
            assert all(each["entities_a_point"] == 1.0 for each in said["questions"])
    assert calls == {"single": 1.0, "iterative": 2.0, "deep": 6.0}
    fails = playing(lambda call, turn: Status(500) if call.purpose == "answer" and turn == 2 else None)
    asking.model.script = fails
    ran = asking.daemon.ctl("eval", "q.json", "--answerer", "single")
    assert ran.code == 0
    assert "EM 0.5000" in ran.out
    assert "1 question without an answer: the model server" in ran.out
    assert asking.daemon.ctl("eval", "q.json", "--only", "local").code == 2
