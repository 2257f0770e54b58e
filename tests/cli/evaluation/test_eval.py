"""`eval`: recall as HippoRAG counts it, over its question files and over questions that name documents."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.errors import CommandError
from cli.evaluation.questions import read_questions
from cli.evaluation.scoring import percentiles
from daemon.contract.choices import DocumentState
from daemon.contract.documents import DocumentEntry, DocumentList
from tests.cli.sample_answers import answer, passage, plain
from tests.cli.scripted_daemon import Here, ReceivedRequest, Scripted

RANKED = [
    passage(1, "Gauge", "The  gauge\nwas built by Strand.", "file:///drive/gauge.md"),
    passage(2, "Noise", "Nothing.", "file:///drive/noise.md"),
    passage(3, "Strand", "Strand lives in Tollmin.", "file:///drive/people/Emil%20Strand.docx"),
    passage(4, "Note", "A note.", "file:///drive/notebook.jsonl#n4"),
]


def paragraph(title: str, text: str, supporting: bool) -> dict[str, Any]:
    return {"title": title, "text": text, "is_supporting": supporting}


HIPPORAG = [
    {
        "id": "q1",
        "question": "Where does the builder of the gauge live?",
        "answer": ["Tollmin"],
        "paragraphs": [
            paragraph("Gauge", "The gauge was built by Strand.", True),
            paragraph("Noise", "Nothing.", False),
            paragraph("Strand", "Strand lives in Tollmin.", True),
        ],
    },
    {"id": "q2", "question": "What is missing?", "paragraphs": [paragraph("Absent", "Not there.", True)]},
]
OWN = [
    {"question": "Where?", "documents": ["gauge.md", "people/Emil Strand.docx"]},
    {"question": "Which note?", "documents": ["notebook.jsonl#n4"]},
]


def questions_asked(scripted: Scripted) -> list[ReceivedRequest]:
    """The queries for questions. The others look up where the gold passages are."""
    return [each for each in scripted.asked if each.body is not None and each.body["query"].endswith("?")]


@pytest.fixture
def asked_with(scripted: Scripted) -> Scripted:
    def ranked(asked: ReceivedRequest) -> dict[str, Any]:
        first = RANKED[: asked.body["k"]]
        mode = asked.body.get("mode", "hipporag2")
        took_ms = 10.0 * len(questions_asked(scripted))
        return answer(*(reversed(first) if mode == "bm25" else first), mode=mode, took_ms=took_ms)

    scripted.answers["POST /v1/query"] = ranked
    entries = [
        DocumentEntry(uri=each.document, title=each.title, state=DocumentState.INDEXED, passages=1, attempts=0)
        for each in RANKED
    ]
    scripted.answers["GET /v1/documents"] = plain(DocumentList(documents=entries))
    return scripted


def test_gold_are_the_supporting_paragraphs(here: Here, asked_with: Scripted, tmp_path: Path) -> None:
    (tmp_path / "questions.json").write_text(json.dumps(HIPPORAG))
    found = here("--json", "eval", "questions.json", "--k", "2,4", "--mode", "dense").json
    assert [(each["id"], each["recall"], each.get("absent"), each["took_ms"]) for each in found.pop("questions")] == [
        ("q1", {"2": 0.5, "4": 1.0}, None, 10.0), ("q2", {"2": 0.0, "4": 0.0}, ["Absent"], 20.0)
    ]  # fmt: skip
    assert found == {
        "n": 2,
        "gold_passages": 3,
        "gold_absent": 1,
        "recall": {"2": 0.25, "4": 0.5},
        "all": {"2": 0.0, "4": 0.5},
        "took_ms": {"p50": 15.0, "p95": 19.5},
        "mode": "dense",
        "filter": {"queries": 2, "kept": 0.5, "emptied": 0, "unfiltered": 0},
    }
    first, second = questions_asked(asked_with)
    assert first.body == {"query": HIPPORAG[0]["question"], "k": 4, "mode": "dense"}
    assert second.body["query"] == "What is missing?"


def test_gold_documents_are_matched_by_the_end_of_their_uri(here: Here, asked_with: Scripted, tmp_path: Path) -> None:
    (tmp_path / "questions.json").write_text(json.dumps(OWN))
    ended = here("--json", "eval", "questions.json", "--k", "1,3,4").json
    assert ended["recall"] == {"1": 0.25, "3": 0.5, "4": 1.0}
    assert ended["all"] == {"1": 0.0, "3": 0.5, "4": 1.0}


def test_compare_reports_several_modes_and_their_differences(here: Here, asked_with: Scripted, tmp_path: Path) -> None:
    (tmp_path / "questions.json").write_text(json.dumps(OWN))
    arguments = ["eval", "questions.json", "--k", "1,4", "--compare", "dense,bm25"]
    whole = here("--json", *arguments).json
    assert [(each["mode"], each["recall"]["1"]) for each in whole["modes"]] == [("dense", 0.25), ("bm25", 0.5)]
    head, dense, bm25, last, *filtered = here(*arguments).out.splitlines()
    assert head.split() == ["mode", "recall@1", "recall@4", "all@1", "all@4", "p50", "p95"]
    assert dense.split()[:5] == ["dense", "0.2500", "1.0000", "0.0000", "1.0000"]
    assert bm25.split()[:5] == ["bm25", "0.5000", "1.0000", "0.5000", "1.0000"]
    assert last == "2 questions"
    assert filtered[:3] == [
        *(
            f"recognition memory {mode}: 50% of the triples kept, 0 queries left without, 0 unfiltered"
            for mode in ("dense", "bm25")
        ),
        "",
    ]
    assert [line.split()[:5] for line in filtered[3:]] == [
        ["difference", "95", "%", "interval", "p"],
        ["bm25", "-", "dense,", "recall@1", "+0.2500"],
        ["bm25", "-", "dense,", "recall@4", "+0.0000"],
    ]


def test_compared_modes_share_an_uncounted_first_query(here: Here, asked_with: Scripted, tmp_path: Path) -> None:
    (tmp_path / "questions.json").write_text(json.dumps(OWN))
    assert here("eval", "questions.json", "--compare", "dense,bm25").code == 0
    asked = [(each.body["query"], each.body["mode"]) for each in questions_asked(asked_with)]
    assert asked == [(one["question"], mode) for one in OWN for mode in ("dense", "dense", "bm25")]


def test_question_formats_of_hipporag_are_read(tmp_path: Path) -> None:
    contexts = {"question": "a?", "contexts": [paragraph("T", "x y", True), paragraph("U", "z", False)]}
    hotpot = {"question": "b?", "supporting_facts": [["T", 0]], "context": [["T", ["x ", "y"]], ["U", ["z"]]]}
    unnamed = {"question": "c?", "paragraphs": [{"title": "T", "paragraph_text": "x y"}]}
    (tmp_path / "q.json").write_text(json.dumps([contexts, hotpot, unnamed]))
    ranked = [passage(1, "T", "x y")]
    assert [(each.gold, each.found(ranked)) for each in read_questions(tmp_path / "q.json")] == [(1, 1)] * 3


@pytest.mark.parametrize(
    "entry",
    [1, {}, {"question": ""}, {"question": "a?"}, {"question": "a?", "documents": []}, {"question": "a?", "documents": [1]},
     {"question": "a?", "documents": ["/"]}, {"question": "a?", "paragraphs": [{"title": "T"}]},
     {"question": "a?", "paragraphs": [paragraph("T", "t", False)]}],
    ids=str,
)  # fmt: skip
def test_an_entry_without_question_or_gold_is_named(tmp_path: Path, entry: object) -> None:
    path = tmp_path / "q.json"
    path.write_text(json.dumps([OWN[0], entry]))
    with pytest.raises(CommandError, match=r"q\.json\[2\] "):
        read_questions(path)


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "[" * 100_000, "\x00"], ids=["empty", "object", "none", "deep", "nul"]
)
def test_a_file_without_questions_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "q.json").write_text(content)
    with pytest.raises(CommandError, match=r"q\.json "):
        read_questions(tmp_path / "q.json")


def test_percentiles_lie_between_the_nearest_two() -> None:
    assert (percentiles([5.0]).p50, percentiles([5.0]).p95) == (5.0, 5.0)
    times = percentiles([float(at) for at in range(1, 101)])
    assert (times.p50, times.p95) == (50.5, 95.05)
