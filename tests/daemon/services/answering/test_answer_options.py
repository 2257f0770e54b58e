"""`ask` retrieves in the way that a request names, and asks for the answer that it names."""

from typing import Any

import pytest

from tests.daemon.services.answering.conftest import Asking, Thoughts
from tests.e2e.real_hippod import Json
from tests.memory.answering.working_memory.toy import QUESTION
from tests.memory.llm.model_server import Script, Text, obedient

pytestmark = pytest.mark.daemon


def filtering(said: Text | Json) -> Script:
    """Returns a script of a model that answers `said` to recognition memory."""
    return lambda call: said if call.purpose == "filter" else obedient(call)


def titles(passages: list[dict[str, Any]]) -> list[str]:
    return [passage["title"] for passage in passages]


@pytest.mark.parametrize("mode", ["bm25", "dense", "hipporag2"])
def test_ask_with_mode_and_settings_retrieves_the_passages_of_an_equal_query(
    asking: Asking, thinking: Thoughts, mode: str
) -> None:
    settings = {"top_triples": 1, "damping": 0.9}
    scope = {"in": ["added:L", "added:S", "added:W"]}
    how: dict[str, Any] = {"mode": mode, "settings": settings, "k": 3, "scope": scope}
    queried = asking.daemon.http.post("/v1/query", json={"query": QUESTION} | how).json()["passages"]
    answer = asking.ask(thinking("Corl Tower!"), steps=2, passages=True, **how)
    assert titles(answer["steps"][0]["found"]) == titles(queried)
    single = asking.ask(passages=True, **how)
    assert [(each["title"], each["document"]) for each in single["passages"]] == [
        (each["title"], each["document"]) for each in queried
    ]
    assert "passages" not in asking.ask(**how)


def test_passages_of_all_steps_are_ranked_by_their_best_score(asking: Asking, thinking: Thoughts) -> None:
    answer = asking.ask(
        thinking("Ottilie is a daughter of the Brandel family."), steps=2, k=2, passages=True, mode="bm25"
    )
    best: dict[str, float] = {}
    for step in answer["steps"]:
        for passage in step["found"]:
            best[passage["title"]] = max(best.get(passage["title"], 0.0), passage["score"])
    found = [(each["title"], each["score"]) for each in answer["passages"]]
    assert dict(found).keys() == best.keys()
    assert len(found) > 2, "more than the answer was read from"
    assert [score for _, score in found] == pytest.approx(sorted(best.values(), reverse=True), abs=1e-6)
    assert [each["rank"] for each in answer["passages"]] == list(range(1, len(found) + 1))


def test_a_closed_book_answer_sees_no_passage(asking: Asking) -> None:
    answer = asking.ask(
        lambda call: {"found": True, "sentences": [{"text": "I know it.", "sources": [1]}], "short": "it"}, mode="none"
    )
    assert (answer["answer"], answer["short"], answer["citations"]) == ("I know it.", "it", [])
    [call] = asking.model.calls
    assert call.body["messages"][-1]["content"] == f"Question: {QUESTION}"
    unknown = asking.ask(
        lambda call: {"found": False, "sentences": [{"text": "No idea.", "sources": []}], "short": ""}, mode="none"
    )
    assert (unknown["answer"], unknown["found"]) == ("The model does not know the answer. No idea.", False)


def test_ask_with_as_of_uses_an_earlier_commit(asking: Asking) -> None:
    before = asking.daemon.status()["commit"]
    asking.daemon.add({"id": "Late", "title": "Late", "text": QUESTION})
    asking.daemon.wait()
    try:
        now = asking.ask(mode="bm25", passages=True)
        then = asking.ask(mode="bm25", passages=True, as_of=before)
        assert now["passages"][0]["title"] == "Late"
        assert "Late" not in titles(then["passages"])
        assert then["commit"] == before
    finally:
        asking.daemon.ask("DELETE", "/v1/documents", json={"uris": ["added:Late"]})
        asking.daemon.wait()


@pytest.mark.parametrize("how", [{}, {"steps": 2}, {"deep": True, "steps": 1}], ids=str)
def test_length_reason_and_verify_options_shape_prompt_and_answer(asking: Asking, how: dict[str, Any]) -> None:
    long = [{"text": f"Sentence {at}.", "sources": [1]} for at in range(30)]

    def script(call: Any) -> Any:
        if call.purpose == "answer":
            return {"reasoning": "First this, then that.", "found": True, "sentences": long, "short": "TRUE."}
        return obedient(call)

    answer = asking.ask(script, length=1500, reason=True, verify=True, **how)
    assert answer["answer"].count("Sentence") == 30, "nothing is cut"
    assert (answer["reasoning"], answer["short"]) == ("First this, then that.", "true")
    call = asking.model.calls[-1]
    system = call.body["messages"][0]["content"]
    assert "1,500 words" in system
    assert "one to four sentences" not in system
    assert call.body["max_tokens"] == 6000
    form = call.body["response_format"]["json_schema"]["schema"]
    assert list(form["properties"]) == ["reasoning", "found", "sentences", "short"]
    assert form["properties"]["short"]["enum"] == ["true", "false", ""]
    assert call.body["messages"][-1]["content"].endswith(f"Claim: {QUESTION}")
    plain = asking.ask(obedient, **how)
    assert "reasoning" not in plain


def test_ask_options_without_effect_are_refused(asking: Asking) -> None:
    for body, field in (
        ({"deep": True, "mode": "dense"}, "mode"),
        ({"deep": True, "filter": "none"}, "filter"),
        ({"deep": True, "settings": {"damping": 0.4}}, "settings"),
        ({"deep": True, "depth": 7}, "depth"),
        ({"mode": "none", "depth": 7}, "depth"),
        ({"mode": "none", "deep": True}, "deep"),
        ({"mode": "none", "steps": 2}, "steps"),
        ({"mode": "none", "scope": {"in": ["added:"]}}, "scope"),
        ({"mode": "none", "as_of": 1}, "as_of"),
        ({"mode": "none", "passages": True}, "passages"),
        ({"deep": True, "session": "s", "as_of": 1}, "session"),
        ({"mode": "no-such"}, "mode"),
        ({"length": 0}, "length"),
    ):
        refused = asking.post(**body)
        assert refused.status_code == 422, (body, refused.text)
        assert field in refused.json()["errors"][0]["field"], refused.text
    assert asking.model.calls == []


def test_hippoctl_ask_sends_its_options(asking: Asking) -> None:
    ran = asking.daemon.ctl(
        "ask",
        QUESTION,
        "--mode",
        "hipporag2",
        "--filter",
        "none",
        "--set",
        "damping=0.4",
        "--length",
        "200",
        "--reason",
        "-k",
        "2",
        "--json",
    )
    assert ran.code == 0, ran.err
    [call] = asking.model.calls
    assert "«passage 2»" in call.passage
    assert "«passage 3»" not in call.passage
    assert "200 words" in call.body["messages"][0]["content"]
    assert asking.daemon.ctl("ask", QUESTION, "--mode", "none", "--verify").code == 0
    assert asking.model.calls[-1].body["messages"][-1]["content"] == f"Claim: {QUESTION}"
    assert asking.daemon.ctl("ask", QUESTION, "--mode", "none", "--deep").code != 0


def test_uncontradicted_claim_is_consistent(asking: Asking) -> None:
    def script(call: Any) -> Any:
        # A model that does what it is told: the passages do not state the claim, and nothing contradicts it.
        if call.purpose != "answer":
            return obedient(call)
        system = call.body["messages"][0]["content"]
        obeys = "need not be stated" in system and "do not settle the claim" not in system
        return {"found": obeys, "sentences": [{"text": "So.", "sources": []}], "short": "true" if obeys else ""}

    claim = "Before the story: as a child, Edda Vance collected shells."
    for how in ({}, {"steps": 1}, {"deep": True, "steps": 1}, {"mode": "none"}):
        assert asking.ask(script, question=claim, consistent=True, **how)["short"] == "true", how
    assert asking.ask(script, question=claim, verify=True)["short"] == ""
    assert asking.model.calls[-1].body["messages"][-1]["content"].endswith(f"Claim: {claim}")


def test_depth_lists_more_passages_than_the_model_reads(asking: Asking) -> None:
    answer = asking.ask(mode="bm25", k=1, depth=4, steps=1)
    query = asking.daemon.ask("POST", "/v1/query", json={"query": QUESTION, "mode": "bm25", "k": 4})
    assert titles(answer["passages"]) == titles(query["passages"])
    assert len(query["passages"]) > 1
    assert len(answer["steps"][0]["found"]) == 1
    assert "«passage 2»" not in asking.model.calls[-1].passage


def test_a_deep_answer_shows_the_passages_that_it_was_written_from(asking: Asking) -> None:
    answer = asking.ask(deep=True, steps=1, each_step=True, passages=True, deep_settings={"answer_passages": 3})
    read = asking.model.calls[-1].passage
    assert 1 <= len(answer["passages"]) <= 3
    for each in answer["passages"]:
        assert f"«passage {each['rank']}»\n{each['title']}\n" in read
        assert each["document"] == f"added:{each['title']}"
    [first] = [step["answer"] for step in answer["steps"] if step["answer"] is not None]
    assert [set(each) for each in first["passages"]] == [set(each) for each in answer["passages"]]
    unasked = asking.ask(deep=True, steps=1, each_step=True)
    assert "passages" not in unasked
    assert all(step["answer"]["passages"] == [] for step in unasked["steps"] if step["answer"] is not None)


def test_truncated_filter_answer_keeps_all_triples_and_is_not_cached(asking: Asking) -> None:
    body = {"query": "Who forged the lantern?", "mode": "hipporag2", "filter": "llm"}
    cut = Text('{"relevant": [["edda vance", "forged", ', finish="length")
    whole: Json = {"relevant": []}
    for said, kept_all in ((cut, True), (whole, False), (cut, False)):
        asking.model.script = filtering(said)
        found = asking.daemon.ask("POST", "/v1/query", json=body)
        assert all(triple["kept"] for triple in found["triples"]) is kept_all
        if kept_all:
            assert found["note"].startswith("unfiltered: the model's answer was cut off")
    # The second answer was remembered, the cut one was not: the third query asks nobody.
    assert asking.purposes.count("filter") == 2
