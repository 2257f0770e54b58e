"""`eval --compare` of rows: settings, filters, answerers, ablations, saved runs; the scores of each question and step."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cli.evaluation.rows import Row, parse_row
from daemon.contract.answering.ask import AskResponse, RetrievedPassage
from daemon.contract.choices import Answerer, DocumentState
from daemon.contract.documents import DocumentEntry, DocumentList
from daemon.contract.evaluation import JudgeResponse
from daemon.contract.query import Tokens
from tests.cli.sample_answers import answer, passage, plain
from tests.cli.scripted_daemon import Here, ReceivedRequest, Scripted

GOLD, NOISE, LATE = (passage(at, f"T{at}", f"The text of number {at}.", f"added:{at}") for at in (1, 2, 3))
QUESTIONS = [
    {"_id": "a", "question": "First?", "documents": ["added:1"], "answer": "Edda Vance"},
    {"_id": "b", "question": "Second?", "documents": ["added:2"], "answer": "the terraces of Sarn"},
]


def retrieved(*found: Any) -> list[RetrievedPassage]:
    return [
        RetrievedPassage(rank=at, score=1.0, id=each.id, title=each.title, text=each.text, document=each.document)
        for at, each in enumerate(found, 1)
    ]


def said(question: str, short: str, **more: Any) -> dict[str, Any]:
    return plain(
        AskResponse(
            question=question,
            answer=f"{short}.",
            short=short,
            citations=[],
            steps=more.pop("steps", []),
            tokens=Tokens(prompt=100, completion=10),
            took_ms=7.0,
            **more,
        )
    )


@pytest.fixture
def memory(scripted: Scripted) -> Scripted:
    """A memory whose first passage is the gold of the first question; `damping` and `filter` change the order."""

    def queried(asked: ReceivedRequest) -> dict[str, Any]:
        body, found = asked.body, [GOLD, NOISE, LATE]
        if body.get("settings") or body.get("filter") == "llm":
            found = [NOISE, LATE, GOLD]
        return answer(*found[: body["k"]], mode=body.get("mode", "fused"))

    def reply(request: ReceivedRequest) -> dict[str, Any]:
        body = request.body
        short = "Vance" if body["question"] == "First?" else "terraces of Sarn"
        if body.get("deep"):
            return said(body["question"], short, answerer=Answerer.DEEP, passages=retrieved(LATE, GOLD), calls=9)
        if "steps" in body:
            found = [NOISE, GOLD, LATE][: max(body["k"], body["depth"])]
            return said(body["question"], short, answerer=Answerer.ITERATIVE, passages=retrieved(*found), calls=3)
        return said(body["question"], "nobody" if body.get("mode") == "none" else short)

    entries = [
        DocumentEntry(uri=each.document, title=each.title, state=DocumentState.INDEXED, passages=1, attempts=0)
        for each in (GOLD, NOISE, LATE)
    ]
    scripted.answers |= {
        "POST /v1/query": queried,
        "POST /v1/ask": reply,
        "GET /v1/documents": plain(DocumentList(documents=entries)),
    }
    return scripted


@pytest.fixture
def questions(tmp_path: Path) -> str:
    (tmp_path / "q.json").write_text(json.dumps(QUESTIONS))
    return "q.json"


def test_rows_with_settings_and_filters_are_compared(here: Here, memory: Scripted, questions: str) -> None:
    specs = "fused,fused damping=0.3,hipporag2 filter=llm top_triples=7"
    found = here("--json", "eval", questions, "--k", "1", "--compare", specs).json
    # The first passage is the first question's gold in the first row, and the second question's in the other two.
    assert [(row["mode"], row.get("name"), row["recall"]) for row in found["modes"]] == [
        ("fused", None, {"1": 0.5}),
        ("fused", "fused damping=0.3", {"1": 0.5}),
        ("hipporag2", "hipporag2 filter=llm top_triples=7", {"1": 0.5}),
    ]
    # Gains -1 and +1: the mean is 0, and every sign pattern is as far from it: p = 1.
    assert [(each["mode"], each["baseline"], each["difference"], each["p"]) for each in found["differences"]] == [
        ("fused damping=0.3", "fused", 0.0, 1.0),
        ("hipporag2 filter=llm top_triples=7", "fused", 0.0, 1.0),
    ]
    asked = [each.body for each in memory.asked if each.path == "/v1/query" and each.body["query"] == "Second?"]
    # The first is not counted: it lets the daemon encode the question.
    assert [(each.get("mode"), each.get("settings"), each.get("filter")) for each in asked] == [
        ("fused", None, None), ("fused", None, None), ("fused", {"damping": 0.3}, None),
        ("hipporag2", {"top_triples": 7}, "llm"),
    ]  # fmt: skip


def test_answerers_are_compared_by_their_own_retrieval(here: Here, memory: Scripted, questions: str) -> None:
    specs = "answerer=single,mode=dense answerer=iterative steps=2,answerer=deep,only=local n_v=7,none"
    found = here("--json", "eval", questions, "--k", "1,2", "--answers", "--read", "1", "--compare", specs).json
    single, iterative, deep, local, none = found["modes"]
    # Single: T1, T2: at 1 the first question's gold, at 2 both. Iterative: T2, T1. Deep: T3, T1: the first question's at 2.
    assert single["recall"] == iterative["recall"] == {"1": 0.5, "2": 1.0}
    assert deep["recall"] == local["recall"] == {"1": 0.0, "2": 0.5}
    assert (none["recall"], none["gold_passages"]) == ({}, 2)
    assert [row["answers"]["answerer"] for row in found["modes"]] == ["single", "iterative", "deep", "deep", "single"]
    assert deep["took_ms"] == {"p50": 7.0, "p95": 7.0}, "the time of the answers, not of queries in another mode"
    # "vance" against "edda vance": F1 2/3; "terraces of sarn" against "terraces of sarn": 1. Mean 5/6. "nobody": 0.
    assert (single["answers"]["f1"], none["answers"]["f1"]) == (0.8333, 0.0)
    bodies = [each.body for each in memory.asked if each.path == "/v1/ask" and each.body["question"] == "First?"]
    assert bodies == [
        {"question": "First?", "k": 1},
        {"question": "First?", "k": 1, "mode": "dense", "steps": 2, "depth": 2},
        {"question": "First?", "k": 1, "deep": True, "passages": True},
        {"question": "First?", "k": 1, "deep": True, "only": "local", "deep_settings": {"n_v": 7}, "passages": True},
        {"question": "First?", "k": 1, "mode": "none"},
    ]


def test_deep_answerer_is_asked_without_k_by_default(here: Here, memory: Scripted, questions: str) -> None:
    assert here("eval", questions, "--answerer", "deep").code == 0
    [body, _] = [each.body for each in memory.asked if each.path == "/v1/ask"]
    assert "k" not in body


def test_recall_of_iterative_answers_uses_k_instead_of_the_passages_read(
    here: Here, memory: Scripted, questions: str
) -> None:
    found = here("--json", "eval", questions, "--steps", "1", "--read", "1", "--k", "1,3").json
    # T2, T1, T3, of which the answer reads the first: at 3 both questions' gold is there.
    assert found["recall"] == {"1": 0.5, "3": 1.0}


def test_each_question_has_its_scores(here: Here, memory: Scripted, questions: str) -> None:
    first, second = here("--json", "eval", questions, "--k", "1,3", "--answers").json["questions"]
    assert first == {
        "id": "a", "question": "First?", "recall": {"1": 1.0, "3": 1.0}, "retrieved": ["added:1", "added:2", "added:3"],
        "short": "Vance", "em": 0.0, "f1": 0.666667, "found": True, "answer": "Vance.", "prompt_tokens": 100,
        "completion_tokens": 10, "calls": 1, "took_ms": 7.0,
    }  # fmt: skip
    assert (second["id"], second["recall"], second["em"], second["f1"]) == ("b", {"1": 0.0, "3": 1.0}, 1.0, 1.0)


def test_a_saved_run_is_compared_question_by_question(
    here: Here, memory: Scripted, questions: str, tmp_path: Path
) -> None:
    assert here("eval", questions, "--k", "1", "--answers", "--mode", "dense", "--save", "old.json").code == 0
    (tmp_path / "more.json").write_text(json.dumps([*reversed(QUESTIONS), QUESTIONS[0] | {"_id": "c"}]))
    better: list[Any] = []

    def judged(asked: ReceivedRequest) -> dict[str, Any]:
        body = asked.body
        better.append((body["criterion"], body["answer"], body.get("other")))
        said = (
            {"better": 1}
            if "other" in body
            else {"correct": True}
            if body["criterion"] == "correctness"
            else {"score": 60}
        )
        return plain(JudgeResponse(reason="So.", tokens=Tokens(prompt=1, completion=1), **said))

    memory.answers["POST /v1/judge"] = judged
    arguments = ["eval", "more.json", "--k", "1", "--compare", "old.json", "--mode", "none", "--judge"]
    found = here("--json", *arguments).json
    old, new = found["modes"]
    assert (old["name"], old["mode"], new["mode"]) == ("old: dense", "dense", "none")
    by_measure = {each["measure"]: each for each in found["differences"]}
    # Two questions are in both. EM: old 0 and 1, new 0 and 0: mean -1/2. F1: old 2/3 and 1, new 0 and 0: mean -5/6.
    assert (by_measure["em"]["n"], by_measure["em"]["difference"]) == (2, -0.5)
    assert by_measure["f1"]["difference"] == -0.8333
    # Each pair is judged in both orders, and the first answer always wins: one point of two, a tie.
    assert [(each["criterion"], each["n"], each["ties"], each["win_rate"]) for each in found["judged"]] == [
        ("comprehensiveness", 2, 2, 0.5), ("diversity", 2, 2, 0.5),
    ]  # fmt: skip
    pairs = [each for each in better if each[2] is not None]
    assert pairs[:2] == [
        ("comprehensiveness", "nobody.", "terraces of Sarn."),
        ("comprehensiveness", "terraces of Sarn.", "nobody."),
    ]
    two = here("--json", "eval", questions, "--compare", "old.json", "--compare", "old.json").json
    assert [row["name"] for row in two["modes"]] == ["old: dense", "old: dense"], "nothing is asked for two saved runs"
    (tmp_path / "bad.json").write_text('{"n": 1, "modes": [{"n": 1}]}')
    ran = here("eval", questions, "--compare", "bad.json")
    assert (ran.code, "bad.json is not a saved evaluation: at modes.0.recall" in ran.err) == (1, True), ran.err


def call(requests: int) -> dict[str, Any]:
    return {"requests": requests, "purpose": "judge"}


def test_each_step_is_scored(here: Here, memory: Scripted, questions: str, tmp_path: Path) -> None:
    def step(number: int, short: str | None, *found: Any, **calls: Any) -> dict[str, Any]:
        written = {
            "short": short,
            "found": True,
            "calls": [call(1)],
            "passages": [plain(each) for each in retrieved(*found)],
        }
        return {"number": number, "answer": written if short is not None else None, **calls}

    def reply(request: ReceivedRequest) -> dict[str, Any]:
        assert (request.body["each_step"], request.body["forced"]) == (True, True)
        if request.body["question"] == "Second?":
            # One step: its answer is the last one. Calls: 1 to evolve, 1 for the answer.
            steps = [step(0, None, evolved=call(1))]
            return said("Second?", "terraces of Sarn", answerer=Answerer.DEEP, passages=retrieved(NOISE), steps=steps,
                        answered=[call(1)], calls=2)  # fmt: skip
        # Calls: step 0: 1 + 1 (merge), and 1 for its answer; step 1: 1 (judge) + 2 (subqueries) + 1 (evolve), and 1 answer.
        steps = [
            step(0, "Edda", LATE, evolved=call(1), merged=call(1)),
            step(1, None, judged=call(1), worded=[call(1), call(1)], evolved=call(1)),
        ]
        return said("First?", "Edda Vance", answerer=Answerer.DEEP, passages=retrieved(GOLD), steps=steps,
                    answered=[call(1)], calls=8)  # fmt: skip

    memory.answers["POST /v1/ask"] = reply
    arguments = ["eval", questions, "--k", "1", "--answerer", "deep", "--each-step", "--forced"]
    answers = here("--json", *arguments).json["answers"]
    # First?, step 0: "edda" against "edda vance": EM 0, F1 2/3, no gold, 3 calls; step 1: 1, 1, the gold, 2 + 4 + 1 = 7 calls
    # (the answer after step 0 is not counted). Second?: 1, 1, its gold, 2 calls, in both steps.
    assert answers["steps"] == [
        {"step": 0, "em": 0.5, "f1": 0.8333, "recall": {"1": 0.5}, "calls": 2.5},
        {"step": 1, "em": 1.0, "f1": 1.0, "recall": {"1": 1.0}, "calls": 4.5},
    ]
    assert answers["questions"][0]["steps"][0] == {
        "step": 0,
        "em": 0.0,
        "f1": 0.666667,
        "recall": {"1": 0.0},
        "calls": 3.0,
    }
    shown = [line.split() for line in here(*arguments).out.splitlines()]
    assert ["step", "recall@1", "EM", "F1", "calls"] in shown
    assert ["1", "1.0000", "1.0000", "1.0000", "4.50"] in shown


def test_several_files_are_averaged(here: Here, memory: Scripted, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(QUESTIONS))
    (tmp_path / "two.json").write_text(json.dumps(QUESTIONS[:1]))
    arguments = [
        "eval",
        "one.json",
        "two.json",
        "--k",
        "1",
        "--compare",
        "fused,fused damping=0.3",
        "--save",
        "all.json",
    ]
    found = here("--json", *arguments).json
    again = here("--json", "eval", "two.json", "--k", "1", "--compare", "all.json", "--mode", "dense").json
    assert [row.get("name", row["mode"]) for row in again["modes"]] == [
        "all: fused", "all: fused damping=0.3", "dense"
    ]  # fmt: skip
    assert [(each["file"], each["n"]) for each in found["files"]] == [("one.json", 2), ("two.json", 1)]
    # fused: 1/2 and 1; with damping: 1/2 and 0. Each file counts the same.
    assert [(each.get("name"), each["recall"]) for each in found["averages"]] == [
        (None, {"1": 0.75}), ("fused damping=0.3", {"1": 0.25}),
    ]  # fmt: skip
    shown = [line.split() for line in here(*arguments).out.splitlines()]
    assert ["fused", "0.7500", "0.5000"] not in shown
    assert ["fused", "0.7500", "0.7500"] in shown


def test_questions_are_limited_to_their_book_and_scope(here: Here, memory: Scripted, tmp_path: Path) -> None:
    books = ["file:///books/A%20Tale.txt", "file:///books/Moby/01.txt", "file:///books/Moby/02.txt"]
    entries = [DocumentEntry(uri=uri, title="t", state=DocumentState.INDEXED, passages=1, attempts=0) for uri in books]
    memory.answers["GET /v1/documents"] = plain(DocumentList(documents=entries))
    asked = [
        {"question": "First?", "answer": "b", "book": "a tale"},
        {"question": "First?", "answer": "b", "book_title": "Moby"},
        {"question": "First?", "answer": "b", "book": "Lost"},
        {"question": "First?", "answer": "b", "book": "Moby", "scope": {"labels": ["own"]}},
    ]
    (tmp_path / "q.json").write_text(json.dumps(asked))
    ran = here("eval", "q.json", "--answers", "--source", "shelf")
    assert ran.code == 0
    assert "1 question of books that the memory does not contain" in ran.err
    scopes = [each.body["scope"] for each in memory.asked if each.path == "/v1/ask"]
    assert scopes == [
        {"in": ["file:///books/A%20Tale.txt"], "source": "shelf"},
        {"in": ["file:///books/Moby/"], "source": "shelf"},
        {"source": "shelf"},
        {"labels": ["own"], "source": "shelf"},
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--compare", "fused,nosuch"], "'nosuch' is not a mode"),
        (["--compare", "fused nosuch=1"], "'nosuch' is not known"),
        (["--compare", "fused damping=9"], "damping: input should be less than or equal to 0.99"),
        (["--compare", "fused damping"], "'damping' is not KEY=VALUE"),
        (["--compare", "hipporag2 walk=none"], "walk has no effect in hipporag2; the modes that read it are hipporag"),
        (["--mode", "hipporag2", "--set", "walk=none"], "walk has no effect in hipporag2"),
        (["--compare", "dense answerer=deep"], "deep answers retrieve in a way of their own"),
        (["--compare", "fused answerer=single quick=true"], "--quick is for --answerer deep"),
        (["--compare", "fused answerer=nobody"], "'nobody' is not an answerer"),
        (["--compare", "fused,none"], "the mode none is for --answers"),
        (["--mode", "dense", "--compare", "fused"], "exclude each other"),
        (["--save", "nowhere/run.json"], "there is not a directory"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)  # fmt: skip
def test_unknown_or_ineffective_row_options_are_refused(
    here: Here, memory: Scripted, questions: str, arguments: list[str], said: str
) -> None:
    ran = here("eval", questions, *arguments)
    assert (ran.code, said in " ".join(ran.err.split())) == (2, True), ran.err


def test_every_row_in_the_documentation_can_be_parsed() -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/evaluation.md").read_text("utf-8")
    named = [spec for command in re.findall(r"--compare '([^']+)'", page) for spec in command.split(",")]
    rows = [parse_row(spec, Row(answerer=Answerer.SINGLE)) for spec in named]
    assert len(rows) > 30
    assert {row.answerer for row in rows} == set(Answerer)
