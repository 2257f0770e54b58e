"""SmolLM2-135M-Instruct behind a hippod: every route that calls a model.

No test depends on the model's knowledge: an answer of any content is right, and so is an error that says what the model did.
"""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.real_hippod import Daemon
from tests.memory.llm.servers.llama_server import needs_llama_cpp
from tests.memory.llm.servers.smollm2 import ANSWER_S, CONTEXT, PASSAGES, needs_smollm2, smollm2

pytestmark = [
    pytest.mark.model_server,
    pytest.mark.daemon,
    pytest.mark.timeout(3600),
    needs_llama_cpp,
    needs_smollm2,
]
QUESTION = "Who built Skellan Light?"
TRIPLES = [["Ada Kerr", "built", "Skellan Light"], ["Skellan Light", "stands on", "Orrey"]]
LONG = 12
"""Number of long passages, which do not fit into the server's context together."""
EVENTS = {"accept": "text/event-stream"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    folder = tmp_path_factory.mktemp("daemon")
    llm = {"model": "smollm2", "timeout_s": ANSWER_S, "max_retries": 1, "price_per_million": [1.0, 2.0]}
    with smollm2(folder) as url:
        running = Daemon(
            folder,
            folders=(),
            llm={"base_url": url, **llm},
            openie={"backend": "llm", "concurrency": 2},
            retrieval={"filter_timeout_s": ANSWER_S},
        )
        with running:
            running.add({"id": "given", "title": "Light", "text": "Ada Kerr built Skellan Light.", "triples": TRIPLES})
            running.wait()
            yield running
            print(running.log_text()[-6000:])


def calls(daemon: Daemon) -> Counter[str]:
    """Returns the number of answered calls by purpose."""
    found: Counter[str] = Counter()
    for each in daemon.ctl_json("costs")["costs"]:
        found[each["purpose"]] += each["calls"]
    return found


def post(daemon: Daemon, path: str, **body: Any) -> Any:
    """Returns the answer, or None if the model's answer was unusable, which the problem then says."""
    response = daemon.http.post(path, json=body, timeout=3 * ANSWER_S)
    if response.status_code == 502:
        detail = response.json()["detail"]
        assert "the model" in detail and "context" not in detail, detail
        return None
    assert response.status_code == 200, response.text
    return response.json()


def events(daemon: Daemon, path: str, **body: Any) -> list[tuple[str, str]]:
    """Returns the name and data of each event of a stream; one `problem` if the answer failed before the first."""
    with daemon.http.stream("POST", path, json=body, headers=EVENTS, timeout=3 * ANSWER_S) as response:
        lines = [line.partition(": ")[::2] for line in response.iter_lines()]
    if response.status_code == 502:
        return [("problem", "")]
    assert response.status_code == 200, lines
    found, name = [], ""
    for key, value in lines:
        if key == "event":
            name = value
        elif key == "data":
            found.append((name, value))
    return found


def test_passages_are_extracted_or_failed_and_their_calls_are_charged(daemon):
    daemon.add(*({"id": each.id, "title": each.title, "text": each.text} for each in PASSAGES))
    daemon.wait(timeout_s=4 * ANSWER_S)
    states = Counter(each["state"] for each in daemon.documents().values())
    assert states["indexed"] + states["failed"] == len(PASSAGES) + 1
    extraction = [each for each in daemon.ctl_json("costs")["costs"] if each["purpose"] in ("entities", "triples")]
    assert {each["source"] for each in extraction} == {"added"}
    assert all(each["money"] > 0 for each in extraction)


def test_recognition_memory_keeps_some_of_the_linked_triples(daemon):
    before = calls(daemon)
    answer = post(daemon, "/v1/query", query=QUESTION, mode="hipporag2", filter="llm")
    assert answer["passages"] and answer["triples"]
    assert calls(daemon)["filter"] > before["filter"]


@pytest.mark.parametrize("how", [{}, {"steps": 2}, {"deep": True, "steps": 1}], ids=["single", "steps", "deep"])
def test_question_is_answered_with_and_without_streaming(daemon, how):
    before = calls(daemon)
    whole = post(daemon, "/v1/ask", question=QUESTION, **how)
    assert whole is None or whole["answer"]
    *grown, (last, data) = events(daemon, "/v1/ask", question=QUESTION, **how)
    assert last in ("answer", "problem")
    assert {name for name, _ in grown} <= {"step", "text"}
    assert last == "problem" or json.loads(data)["answer"]
    made = calls(daemon) - before
    assert made["answer"] > 0
    expected = {"steps": {"thought"}, "deep": {"evolve"}}
    assert all(purposes <= made.keys() for name, purposes in expected.items() if how.get(name) not in (None, 1)), made


@pytest.mark.parametrize("model", ["hippod", "hippod-deep"])
def test_chat_is_answered_with_and_without_streaming(daemon, model):
    body = {"model": model, "messages": [{"role": "user", "content": QUESTION}]}
    whole = post(daemon, "/v1/chat/completions", **body)
    assert whole is None or whole["choices"][0]["message"]["content"]
    streamed = events(daemon, "/v1/chat/completions", **body, stream=True)
    pieces = [data for _, data in streamed]
    assert pieces[-1] == "[DONE]" or "the model" in pieces[-1] or streamed == [("problem", "")]


def test_cancelled_question_frees_the_model_and_is_counted(daemon):
    before = calls(daemon)["answer"]
    body = {"question": "Tell all that you know about Ada Kerr and Orrey.", "length": 400}
    with daemon.http.stream("POST", "/v1/ask", json=body, headers=EVENTS, timeout=ANSWER_S) as response:
        next(response.iter_lines())
    post(daemon, "/v1/ask", question=QUESTION)
    assert calls(daemon)["answer"] == before + 2


def test_two_clients_at_once_are_both_answered(daemon):
    questions = [QUESTION, "Where is Tolm?"]
    before = calls(daemon)["answer"]
    with ThreadPoolExecutor(2) as clients:
        list(clients.map(lambda question: post(daemon, "/v1/ask", question=question), questions))
    assert calls(daemon)["answer"] >= before + 2


def test_an_evaluation_reports_scores_and_costs(daemon, tmp_path, capsys):
    questions = [
        {
            "id": passage.id,
            "question": asked,
            "answer": [known],
            "paragraphs": [{"title": passage.title, "text": passage.text, "is_supporting": True}],
        }
        for passage, asked, known in zip(PASSAGES, (QUESTION, "Where is Tolm?"), ("Ada Kerr", "Orrey"), strict=True)
    ]
    file = tmp_path / "questions.json"
    file.write_text(json.dumps(questions))
    for more in (["--answers", "--judge"], ["--answerer", "deep", "--each-step", "--steps", "1"]):
        ran = daemon.ctl("--json", "eval", str(file), *more, timeout_s=12 * ANSWER_S)
        # If the model answers no question at all, the evaluation ends with the last reason.
        assert ran.code == 0 or "the model" in ran.json["detail"], ran
        if ran.code == 0:
            assert ran.json["n"] == len(questions)
            assert ran.json["cost"]["prompt_tokens"] > 0
    with capsys.disabled():
        print(json.dumps(daemon.ctl_json("costs")["costs"], indent=1))


def test_more_passages_than_fit_into_the_context_are_left_out_of_the_answer(daemon):
    """The last test, because its long passages make every later prompt longer."""
    # About 400 tokens each; with `triples`, they need no extraction.
    sentences = " ".join(f"Lamp {number} of Skellan Light burns oil of the year 18{number:02}." for number in range(25))
    daemon.add(
        *(
            {"id": f"long {at}", "title": f"Lamps {at}", "text": f"Book {at}. {sentences}", "triples": TRIPLES}
            for at in range(LONG)
        )
    )
    daemon.wait()
    query = {"query": "Which lamps of Skellan Light burn oil?", "mode": "bm25", "k": LONG}
    found = daemon.ask("POST", "/v1/query", json=query)["passages"]
    assert sum(len(each["text"]) for each in found) > 4 * CONTEXT, "more than the context can contain"
    answer = post(daemon, "/v1/ask", question=query["query"], mode="bm25", k=LONG)
    assert answer is None or "passages were left out of the answer" in answer["note"]
