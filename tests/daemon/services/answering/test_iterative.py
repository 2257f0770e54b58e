"""`ask --steps N`: a thought between two retrievals; what fails, and what a budget ends, still ends in an answer."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.daemon.services.answering.conftest import Asking, Thoughts
from tests.e2e.real_hippod import Json, until
from tests.memory.answering.working_memory.toy import QUESTION
from tests.memory.llm.model_server import Dies, Drop, Hang, Script, Status, Text, obedient

pytestmark = pytest.mark.daemon

FIRST = "Corl Tower was sold to the Brandel family."
SECOND = "Ottilie is a daughter of the Brandel family."
ENOUGH = "Ottilie pays for the flame!"


def found(step: dict[str, Any]) -> list[str]:
    return [passage["title"] for passage in step["found"]]


def test_each_thought_is_the_next_query_until_one_answers(asking: Asking, thinking: Thoughts) -> None:
    answer = asking.ask(thinking(FIRST, SECOND, ENOUGH), steps=10, k=3)
    assert [step["query"] for step in answer["steps"]] == [QUESTION, FIRST, SECOND]
    assert [step["thought"]["answers"] for step in answer["steps"]] == [False, False, True]
    assert asking.purposes == ["thought", "thought", "thought", "answer"]
    assert (answer["answerer"], answer["stopped"], answer["calls"]) == ("iterative", "answered", 4)
    assert (answer["answer"], answer["short"], answer["written"]) == ("It is so. [1]", "so", True)
    for step in answer["steps"]:
        alone = [passage["title"] for passage in asking.daemon.query(step["query"], mode=None, k=3)]
        assert found(step) == alone, "each step retrieves as a query does"


def test_passages_are_merged_by_their_best_score_and_read_in_that_order(asking: Asking, thinking: Thoughts) -> None:
    answer = asking.ask(thinking(FIRST, ENOUGH), steps=5, k=4)
    best: dict[str, float] = {}
    for step in answer["steps"]:
        assert step["found"][0]["score"] == 1.0
        for passage in step["found"]:
            best[passage["id"]] = max(best.get(passage["id"], 0.0), passage["score"])
        scores = [passage["score"] for passage in step["passages"]]
        assert scores == sorted(best.values(), reverse=True)[:4]
        assert all(passage["score"] == best[passage["id"]] for passage in step["passages"])
    new = [id for step in answer["steps"] for id in step["new"]]
    assert sorted(new) == sorted(best), "what is new is new once"
    read = asking.model.calls[-1].passage
    titles = [passage["title"] for passage in answer["steps"][-1]["passages"]]
    assert [read.index(f"«passage {rank}»\n{title}\n") for rank, title in enumerate(titles, 1)]


def test_thought_sources_are_limited_to_the_passages_shown(asking: Asking, thinking: Thoughts) -> None:
    [step] = asking.ask(thinking(ENOUGH), steps=3)["steps"]
    assert step["thought"] == {"text": ENOUGH, "answers": True, "sources": [step["passages"][0]["id"]]}
    assert json.loads(step["reply"]) == {"thought": ENOUGH, "sources": [1, 99, "two"], "answers": True}


def test_last_step_has_no_thought_and_a_repeated_thought_ends_the_steps(asking: Asking, thinking: Thoughts) -> None:
    answer = asking.ask(thinking(FIRST), steps=2)
    assert (len(answer["steps"]), answer["stopped"], answer["steps"][1]["thought"]) == (2, "steps", None)
    answer = asking.ask(thinking(FIRST, FIRST), steps=9)
    assert (len(answer["steps"]), answer["stopped"]) == (2, "nothing new")
    answer = asking.ask(steps=1)
    assert (len(answer["steps"]), answer["stopped"], answer["calls"]) == (1, "steps", 1)


@pytest.mark.parametrize(
    "said",
    [Status(500), Status(401), Status(400), Drop(), Text("no JSON"), {"thought": 7}, Text('{"thought": ', "length")],
    ids=str,
)
def test_failed_thought_ends_the_steps_and_the_answer_uses_found_passages(
    asking: Asking, thinking: Thoughts, said: Any
) -> None:
    play = thinking(FIRST)
    asking.model.script = lambda call: (
        said if call.purpose == "thought" and asking.purposes.count("thought") > 1 else play(call)
    )
    answer = asking.ask(steps=5)
    assert (len(answer["steps"]), answer["stopped"], answer["written"]) == (2, "model", True)
    assert answer["note"].startswith("ended after 2 steps: the model")
    assert answer["answer"] == "It is so. [1]"
    assert asking.purposes == ["thought", "thought", "answer"] if said != Status(400) else True


@pytest.mark.parametrize(
    "said", [Status(500), Drop(), Text("no JSON"), Dies('{"found": true, "sentences": [{"te', 30)], ids=str
)
def test_thoughts_are_the_answer_if_the_model_cannot_write_one(asking: Asking, thinking: Thoughts, said: Any) -> None:
    answer = asking.ask(thinking(FIRST, ENOUGH, answer=said), steps=5)
    assert answer["answer"] == f"{FIRST} [1] {ENOUGH} [{len(answer['citations'])}]"
    assert (answer["written"], answer["short"], answer["found"]) == (False, "", True)
    assert "consists of the thoughts" in answer["note"]
    assert asking.purposes.count("answer") == 1, "the failure is told at once: nothing is tried again"
    refused = asking.post(steps=1)
    assert refused.status_code == 502, "without a thought there is nothing to answer from"


def test_model_server_that_disappears_ends_the_question_with_its_thoughts(asking: Asking, thinking: Thoughts) -> None:
    play = thinking(FIRST, SECOND)

    def script(call: Any) -> Any:
        if asking.purposes.count("thought") == 2:
            asking.model._server.close()  # type: ignore[union-attr]
            return Drop()
        return play(call)

    answer = asking.ask(script, steps=5)
    asking.model.start()
    assert (answer["answer"], answer["written"]) == (f"{FIRST} [1]", False)


@pytest.mark.parametrize("steps", [None, 1])
def test_a_prompt_beyond_the_models_context_is_shortened_to_the_best_passages(
    asking: Asking, steps: int | None
) -> None:
    answered = asking.ask(k=5)

    def script(call: Any) -> Any:
        refusal = json.dumps({"error": {"message": "the request exceeds the available context size"}})
        return Status(400, refusal) if "«passage 3»" in call.passage else obedient(call)

    asking.model.calls.clear()
    answer = asking.ask(script, k=5, **({} if steps is None else {"steps": steps}))
    # 5 passages are refused (first with fewer tokens for the answer, then with half of the passages): 3, then 2.
    shown = [call.passage.count("«passage ") for call in asking.model.calls]
    assert (shown[0], shown[-1], set(shown)) == (5, 2, {5, 3, 2})
    assert (answer["answer"], answer["citations"]) == (answered["answer"], answered["citations"])
    assert answer["note"] == "3 of 5 passages were left out of the answer: the model refused a longer prompt"


def test_repetition_in_an_answer_is_shown_once_and_charged_completely(asking: Asking) -> None:
    endless = '{"found": true, "sentences": [{"text": "The lantern is' + " a myth, a legend," * 300
    answer = asking.ask(lambda _call: Text(endless, "length"))
    assert answer["answer"] == "The lantern is a myth, a legend,"
    assert answer["tokens"]["completion"] > 400, "the whole text until the call was ended is charged"


def test_one_passage_beyond_the_models_context_is_an_error(asking: Asking) -> None:
    asking.model.script = lambda _call: Status(413)
    refused = asking.post(k=3)
    assert (refused.status_code, "refuses the request (413)" in refused.json()["detail"]) == (502, True)
    assert [call.passage.count("«passage ") for call in asking.model.calls] == [3, 2, 1]


def test_exhausted_budget_ends_the_steps_and_is_noted(asking: Asking, thinking: Thoughts) -> None:
    answer = asking.ask(thinking(FIRST, SECOND, "Third."), steps=9, max_calls=3)
    assert (answer["stopped"], answer["calls"], len(answer["steps"])) == ("calls", 3, 3)
    assert "ended after 3 steps: no more than 3 calls" in answer["note"]
    answer = asking.ask(thinking(FIRST, SECOND), steps=9, max_tokens=1)
    assert (answer["stopped"], answer["calls"], answer["written"]) == ("tokens", 0, False)
    assert "no more than 1 tokens" in answer["note"]
    assert answer["answer"].startswith("No answer was written. Found: ")
    assert len(answer["citations"]) == 5
    answer = asking.ask(steps=9, max_calls=1)
    assert (answer["stopped"], answer["calls"]) == ("calls", 1)


def with_time_enough(asking: Asking, script: Callable[[], Script], expected: str, **body: Any) -> tuple[float, Json]:
    """The first time limit of these that lets this machine come to the call that hangs, however busy it is, and the answer."""
    for seconds in (1.0, 4.0, 16.0, 64.0):
        asking.model.calls.clear()
        answer = asking.ask(script(), timeout_s=seconds, **body)
        if answer["answer"] == expected:
            break
    return seconds, answer


def test_timeout_ends_a_question_whose_model_hangs(asking: Asking, thinking: Thoughts) -> None:
    def hangs_at_the_second_thought() -> Script:
        play = thinking(FIRST)
        return lambda call: Hang() if asking.purposes.count("thought") == 2 and call.purpose != "answer" else play(call)

    seconds, answer = with_time_enough(asking, hangs_at_the_second_thought, "It is so. [1]", steps=9)
    assert (answer["stopped"], answer["answer"]) == ("seconds", "It is so. [1]")
    assert f"no more than {seconds:g} s" in answer["note"]
    _, answer = with_time_enough(asking, lambda: thinking(FIRST, answer=Hang()), f"{FIRST} [1]", steps=2)
    assert (answer["answer"], answer["written"]) == (f"{FIRST} [1]", False)
    ran = asking.daemon.ctl("--json", "ask", QUESTION, "--steps", "1", "--timeout", "1")
    assert (ran.code, ran.json["type"]) == (5, "urn:hippod:problem:timed-out")


def test_steps_are_streamed_as_they_happen(asking: Asking, thinking: Thoughts) -> None:
    asking.model.script = thinking(FIRST, ENOUGH)
    events = asking.streamed(steps=5, k=2)
    told = [data["kind"] for name, data in events if name == "step"]
    assert told == ["retrieved", "thought", "retrieved", "thought", "answering"]
    assert [name for name, _ in events][-2:] == ["text", "answer"]
    first = events[0][1]
    assert (first["step"], first["query"], first["passages"], first["new"]) == (1, QUESTION, 2, 2)
    assert events[1][1]["thought"]["text"] == FIRST


def test_unicode_line_separators_do_not_break_the_stream(asking: Asking, thinking: Thoughts) -> None:
    question = "Who pays\u2028for the\x85flame\u2029of Corl Tower?"
    asking.model.script = thinking(FIRST, ENOUGH)
    events = asking.streamed(question=question, steps=5, k=2)
    assert events[0][1]["query"] == question
    assert events[-1][0] == "answer"


def test_options_without_effect_or_with_invalid_values_are_refused(asking: Asking) -> None:
    for body, field in (
        ({"session": "s"}, "session"),
        ({"steps": 3, "only": "local"}, "only"),
        ({"steps": 3, "merge": False}, "merge"),
        ({"max_calls": 3}, "max_calls"),
        ({"deep": True, "session": "../s"}, "session"),
        ({"deep": True, "steps": 21}, "steps"),
        ({"deep": True, "timeout_s": 0}, "timeout_s"),
        ({"deep": True, "only": "both"}, "only"),
    ):
        refused = asking.post(**body)
        assert refused.status_code == 422, (body, refused.text)
        assert refused.json()["errors"][0]["field"] == field
    assert asking.model.calls == []


def test_iterative_question_uses_the_commit_at_its_start(asking: Asking, thinking: Thoughts) -> None:
    """While it is answered one document is removed, one edited, one added, and one that holds the same passage."""
    daemon = asking.daemon
    before = daemon.status()["commit"]
    play = thinking(
        FIRST,
        SECOND,
        ENOUGH,
        answer={"found": True, "short": "x", "sentences": [{"text": "So.", "sources": [1, 2, 3, 4, 5, 6, 7, 8]}]},
    )
    new = [["ottilie", "is a daughter of", "brandel family"]]
    same = {"id": "A", "title": "Lantern", "text": "Edda Vance forged the tower lantern that hangs in Corl Tower."}

    def script(call: Any) -> Any:
        if call.purpose == "thought" and asking.purposes.count("thought") == 1:
            daemon.ask("DELETE", "/v1/documents", json={"uris": ["added:Sale"]})
            daemon.add({"id": "New", "title": "New", "text": f"{SECOND} {QUESTION}", "triples": new}, same)
            daemon.wait()
        return play(call)

    try:
        answer = asking.ask(script, steps=5, k=8)
        assert daemon.status()["commit"] > answer["commit"] == before
        assert "New" not in {title for step in answer["steps"] for title in found(step)}
        cited = {citation["document"] for citation in answer["citations"]}
        assert cited == {
            f"added:{name}" for name in ("Lantern", "Sale", "Workshop", "Wedding", "Oath", "Ledger", "Tea")
        }
        play = obedient
        assert "New" in found(asking.ask(steps=1, k=8)["steps"][0]), "the next question sees it"
    finally:
        from tests.daemon.services.answering.conftest import documents

        daemon.ask("DELETE", "/v1/documents", json={"uris": ["added:New", "added:A"]})
        daemon.add(*[each for each in documents() if each["id"] == "Sale"])
        daemon.wait()


def test_a_client_that_goes_away_ends_the_question(asking: Asking) -> None:
    asking.model.script = lambda call: Hang() if call.purpose == "thought" else obedient(call)
    with asking.daemon.http.stream(
        "POST", "/v1/ask", json={"question": QUESTION, "steps": 3}, headers={"accept": "text/event-stream"}
    ) as response:
        lines = response.iter_lines()
        assert next(lines) == "event: step"
        until(lambda: asking.purposes == ["thought"], "the model is asked")
    asking.model.script = obedient
    assert asking.ask()["answer"] == "It is so. [1]"
    assert asking.purposes == ["thought", "answer"]


def test_stopping_daemon_ends_a_streamed_question_with_a_problem_event(asking: Asking, thinking: Thoughts) -> None:
    asking.model.script = lambda call: Hang() if call.purpose == "thought" else obedient(call)
    held: list[str] = []
    with asking.daemon.http.stream(
        "POST", "/v1/ask", json={"question": QUESTION, "steps": 3}, headers={"accept": "text/event-stream"}
    ) as response:
        lines = response.iter_lines()
        assert next(lines) == "event: step"
        until(lambda: asking.purposes == ["thought"], "the model is asked")
        process = asking.daemon.process
        assert process is not None
        process.terminate()
        held += lines
    assert "event: problem" in held
    assert "not-ready" in held[held.index("event: problem") + 1]
    assert asking.daemon.stop() == 0
    asking.daemon.start()
    assert not asking.daemon.events("request_failed")
    assert asking.ask(obedient)["answer"] == "It is so. [1]"
