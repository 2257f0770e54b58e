"""Recognition memory and answers: what a model says is checked, what it costs is bounded, and its failure is told."""

import json
import os
import pty
import subprocess
import threading

import pytest

from tests.e2e.real_hippod import PATIENCE_S, Daemon, clean_environment, until
from tests.memory.llm.model_server import Dies, Hang, Pauses, Status, Text, obedient

pytestmark = pytest.mark.daemon

FACTS = {
    "Tolm": [["Tolm Harbour", "was designed by", "Ada Kerr"], ["Tolm Harbour", "lies on", "Orrey"]],
    "Kerr": [["Ada Kerr", "was born in", "Sorrel"], ["Ada Kerr", "built", "Skellan Light"]],
    "Brekke": [["Brekke Band", "plays", "polkas"]],
}
QUESTION = "Where was the designer of Tolm Harbour born?"


@pytest.fixture
def daemon(hippo, model) -> Daemon:
    """A small memory whose triples came with its documents; only queries and questions ask the model."""
    made: Daemon = hippo(model, retrieval={"filter_timeout_s": 1.0, "mode": "hipporag2"}).start()
    made.add(
        *[
            {
                "id": name,
                "title": name,
                "text": f"{name}. " + " ".join(" ".join(t) + "." for t in triples),
                "triples": triples,
            }
            for name, triples in FACTS.items()
        ]
    )
    made.wait()
    assert model.calls == []
    return made


def query(daemon: Daemon, **more):
    return daemon.ask("POST", "/v1/query", json={"query": QUESTION, **more})


def kept(answer):
    return [(t["subject"], t["object"]) for t in answer["triples"] if t["kept"]]


def test_filter_keeps_chosen_triples_and_near_matches_only(daemon, model):
    model.script = lambda call: {
        "relevant": [
            ["Tolm Harbour", "designed by", "Ada Kerr"],  # nearly as offered
            ["ada kerr", "was born in", "sorrel"],
            ["Ada Kerr", "rules over", "the whole world and all its seas"],
            ["two", "parts"],
            7,
        ]
    }
    answer = query(daemon)
    assert set(kept(answer)) == {("tolm harbour", "ada kerr"), ("ada kerr", "sorrel")}
    assert "note" not in answer
    assert [call.purpose for call in model.calls] == ["filter"]
    offered = json.loads(model.calls[0].passage)["candidates"]
    assert offered == [[t["subject"], t["predicate"], t["object"]] for t in answer["triples"]]


def test_the_same_question_is_filtered_once(daemon, model):
    assert query(daemon)["triples"] == query(daemon)["triples"]
    assert model.count("filter") == 1


def test_an_empty_choice_leads_to_dense_retrieval(daemon, model):
    model.script = lambda call: {"relevant": []}
    answer = query(daemon)
    assert kept(answer) == []
    assert "dense" in answer["note"]
    dense = query(daemon, mode="dense")
    assert [p["id"] for p in answer["passages"]] == [p["id"] for p in dense["passages"]]
    assert daemon.metric("hippod_filter_total", outcome="emptied") == 1


def test_query_without_filter_calls_no_model(daemon, model):
    assert len(kept(query(daemon, filter="none"))) == len(query(daemon, filter="none")["triples"])
    assert model.calls == []


@pytest.mark.parametrize("said", [Hang(), Status(500), Status(429, headers={"Retry-After": "30"}), Text("no")])
def test_query_with_failed_or_slow_filter_is_unfiltered_with_a_note(daemon, model, said):
    expected = query(daemon, filter="none")
    model.script = lambda call: said
    answer = query(daemon)
    assert answer["note"].startswith("unfiltered")
    for part in ("passages", "triples", "seeds"):
        assert answer[part] == expected[part]


def test_twelve_hanging_filters_time_out_concurrently(daemon, model):
    """Twelve queries wait for their limit side by side: if one had to wait for another, some would not be in time."""
    model.script = lambda call: Hang()
    answers = []

    def one(number: int) -> None:
        answer = daemon.ask("POST", "/v1/query", json={"query": f"{QUESTION} {number}"})
        answers.append((answer["took_ms"], answer["note"]))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    until(lambda: model.inside == 12, "all of them ask the model at once")
    for thread in threads:
        thread.join()
    assert all("longer than 1 s" in note for _, note in answers)


def test_an_answer_cites_passages_that_exist_and_nothing_else(daemon, model):
    def script(call):
        if call.purpose == "filter":
            return obedient(call)
        first, second = (
            {"text": "She was born in Sorrel [9].", "sources": [2, 9, 0, "one", True, None]},
            {"text": "Surely.", "sources": []},
        )
        return {"found": True, "sentences": [first, second], "short": "Sorrel"}

    model.script = script
    answer = daemon.ctl_json("ask", QUESTION)
    passages = query(daemon)["passages"]
    assert answer["answer"] == "She was born in Sorrel. [2] Surely."
    [citation] = answer["citations"]
    assert (citation["rank"], citation["document"]) == (2, passages[1]["document"])
    assert citation["text"] == passages[1]["text"]
    assert (answer["answerer"], answer["calls"], answer["written"]) == ("single", 2, True)
    asked = next(call for call in model.calls if call.purpose == "filter")
    prompt = sum(len(message["content"]) for message in asked.body["messages"]) // 4
    assert answer["tokens"] == {"prompt": 11 + prompt, "completion": 7 + 5}, "the answer's and recognition memory's"
    assert (answer["question"], answer["short"], answer["found"]) == (QUESTION, "Sorrel", True)
    asked = next(call for call in model.calls if call.purpose == "answer")
    assert all(f"«passage {n}»" in asked.passage for n in range(1, len(passages) + 1))


@pytest.mark.parametrize(
    ("sentences", "said", "cited"),
    [
        (["She was born in Sorrel."], "She was born in Sorrel.", []),
        (
            ["She was born in Sorrel [1].", {"text": "Surely.", "sources": ["2"]}],
            "She was born in Sorrel. Surely. [2]",
            [2],
        ),
        (
            [{"text": "In Sorrel.", "sources": "1"}, {"text": "Surely.", "sources": 2}],
            "In Sorrel. [1] Surely. [2]",
            [1, 2],
        ),
    ],
)
def test_an_answer_in_slightly_other_json_is_taken(daemon, model, sentences, said, cited):
    whole = {"found": True, "sentences": sentences, "short": "Sorrel"}
    model.script = lambda call: whole if call.purpose == "answer" else obedient(call)
    answer = daemon.ctl_json("ask", QUESTION)
    assert (answer["answer"], answer["short"], answer["found"]) == (said, "Sorrel", True)
    assert [citation["rank"] for citation in answer["citations"]] == cited


def test_ask_reports_if_the_memory_does_not_hold_the_answer(daemon, model):
    model.script = lambda call: (
        {"found": False, "sentences": [], "short": "x"} if call.purpose == "answer" else obedient(call)
    )
    answer = daemon.ctl_json("ask", "What is the price of tea?")
    assert "does not hold the answer" in answer["answer"]
    assert (answer["citations"], answer["short"], answer["found"]) == ([], "", False)


def test_partial_answer_is_printed_on_a_terminal(daemon, model):
    """The model stops in the middle of its answer: what came so far is on the terminal by then."""
    whole = json.dumps(
        {"found": True, "sentences": [{"text": "Ada Kerr was born in Sorrel.", "sources": [1]}], "short": "Sorrel"}
    )
    go = threading.Event()
    said = Pauses(whole, whole.index("Sorrel") + len("Sorrel"), go)
    model.script = lambda call: said if call.purpose == "answer" else obedient(call)
    ours, theirs = pty.openpty()
    environment = clean_environment(daemon.home) | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        daemon.command("ask", QUESTION), stdout=theirs, stderr=theirs, env=environment, cwd=daemon.home
    )
    os.close(theirs)
    before, text = "", b""
    try:
        while piece := os.read(ours, 4096):
            text += piece
            if "Ada Kerr was" in text.decode("utf-8", "ignore") and not go.is_set():
                before = text.decode("utf-8", "ignore")
                go.set()
    except OSError:
        pass  # the terminal's other end is closed
    finally:
        go.set()
    assert process.wait(PATIENCE_S) == 0
    assert "Ada Kerr was" in before
    assert "Sources" not in before
    assert "Ada Kerr was born in Sorrel. [1]" in text.decode()
    assert "Sources" in text.decode()


def test_question_fails_if_the_server_dies_during_the_answer(daemon, model):
    """Nothing is tried again: the error follows the failure, long before any time limit (20 s here)."""
    model.script = lambda call: (
        Dies('{"found": true, "sentences": [{"text": "Ada', 30) if call.purpose == "answer" else obedient(call)
    )
    ran = daemon.ctl("--json", "ask", QUESTION)
    assert ran.code == 1
    assert ran.json["type"].endswith("upstream")
    assert model.count("answer") == 1
    model.script = lambda call: Hang() if call.purpose == "answer" else obedient(call)
    ended = {}

    def asking() -> None:
        ended["response"] = daemon.http.post("/v1/ask", json={"question": QUESTION})

    thread = threading.Thread(target=asking)
    thread.start()
    until(lambda: model.count("answer") == 2 and model.inside, "the model is asked")
    model.stop()
    thread.join(20)
    assert ended["response"].status_code == 502


def test_ask_without_a_model_exits_with_4_and_names_the_settings(tmp_path):
    daemon = Daemon(tmp_path)
    try:
        daemon.start()
        ran = daemon.ctl("ask", "who?")
        assert ran.code == 4
        for line in ("[llm]", "base_url = ", "model = "):
            assert line in ran.err
        assert daemon.ctl("query", "who?", "--filter", "llm").code == 4
        assert daemon.ctl("backfill").code == 4
    finally:
        daemon.close()


def test_eval_scores_answers_and_reports_filter_outcomes(daemon, model, tmp_path):
    def script(call):
        if call.purpose == "filter":
            return {"relevant": json.loads(call.passage)["candidates"][:1]}
        short = "the Sorrel!" if "designer" in call.passage.rpartition("Question:")[2] else "a green Sorrel"
        return {"found": True, "sentences": [{"text": "So.", "sources": [1]}], "short": short}

    model.script = script
    questions = [
        {"question": QUESTION, "documents": ["added:Kerr"], "answer": ["Nowhere", "sorrel"]},
        {"question": "Where was Ada Kerr born?", "documents": ["added:Kerr"], "answer": "Sorrel", "answer_aliases": []},
    ]
    (daemon.home / "questions.json").write_text(json.dumps(questions))
    said = daemon.ctl_json("eval", "questions.json", "--answers")
    assert {key: said["answers"][key] for key in ("n", "em", "f1")} == {"n": 2, "em": 0.5, "f1": 0.8333}
    assert said["answers"]["completion_tokens"] == 14, "recognition memory remembers the queries' answers"
    assert said["filter"]["queries"] == 2
    assert (said["filter"]["kept"], said["filter"]["emptied"]) == (0.2, 0)


def test_query_entities_come_from_the_rules_if_the_model_fails(daemon, model):
    model.script = lambda call: {"query_entities": ["Brekke Band"]} if call.purpose == "query_entities" else Status(500)
    named = query(daemon, mode="hipporag")
    assert [seed["phrase"] for seed in named["seeds"]] == ["brekke band"]
    by_rules = query(daemon, mode="hipporag", settings={"entities": "rules"})
    assert [seed["phrase"] for seed in by_rules["seeds"]] == ["tolm harbour"]
    query(daemon, mode="hipporag")
    assert model.count("query_entities") == 1, "an equal query is read once"
    model.script = lambda call: Status(500)
    failed = daemon.ask("POST", "/v1/query", json={"query": f"{QUESTION} Quickly", "mode": "ner-to-node"})
    assert failed["note"].startswith("names found by rules")
    assert "tolm harbour" in [seed["phrase"] for seed in failed["seeds"]]
