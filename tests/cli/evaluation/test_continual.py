"""`eval --continual` cuts the memory as it came, and asks the first segment's questions after each."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cli.errors import CommandError
from cli.evaluation.continual import Segment, answered_questions, chosen_segment, documents_of, segments
from cli.evaluation.gold import GoldPassage
from cli.evaluation.questions import EvalQuestion, GoldLocator
from daemon.contract.choices import DocumentState
from daemon.contract.documents import DocumentEntry
from tests.cli.sample_answers import answer, passage, plain
from tests.cli.scripted_daemon import Here, Scripted, Shell

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)


def entry(number: int, minute: int, passages: int = 1) -> DocumentEntry:
    return DocumentEntry(
        uri=f"added:{number}",
        title=f"T{number}",
        state=DocumentState.INDEXED,
        passages=passages,
        attempts=0,
        committed_at=BEGAN + timedelta(minutes=minute),
    )


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_segments_are_of_similar_size_and_end_at_a_commit(count: int) -> None:
    documents = [entry(at, at // 2) for at in range(40)]
    cut = segments(documents, count)
    assert [segment.number for segment in cut] == list(range(1, count + 1))
    held = [0, *(segment.passages for segment in cut)]
    sizes = [b - a for a, b in pairwise(held)]
    assert max(sizes) - min(sizes) <= 2
    assert (cut[-1].passages, cut[-1].as_of) == (40, None)
    for segment in cut[:-1]:
        assert segment.as_of is not None
        limit = datetime.fromisoformat(segment.as_of)
        there = [each for each in documents if each.committed_at is not None and each.committed_at <= limit]
        assert len(there) == segment.documents


def test_every_segment_gets_a_commit_despite_one_large_commit() -> None:
    documents = [entry(0, 0, passages=1000), entry(1, 1), entry(2, 2), entry(3, 3)]
    assert [segment.passages for segment in segments(documents, 4)] == [1000, 1001, 1002, 1003]
    documents = [entry(0, 0), entry(1, 1), entry(2, 2), entry(3, 3, passages=1000)]
    assert [segment.passages for segment in segments(documents, 4)] == [1, 2, 3, 1003]


def test_memory_with_fewer_commits_than_segments_is_an_error() -> None:
    with pytest.raises(CommandError, match="came in 1 commits"):
        segments([entry(0, 0), entry(1, 0)], 2)
    with pytest.raises(CommandError, match="came in 0 commits"):
        segments([], 2)


def test_only_questions_with_all_their_gold_in_the_first_segment_are_asked() -> None:
    documents = [entry(at, at) for at in range(4)]
    cut = segments(documents, 2)
    there = documents_of(cut[0], documents)
    assert [each.uri for each in there] == ["added:0", "added:1"]

    def find_passages(_question: EvalQuestion, text: str) -> list[Any]:
        return [passage(1, each.title, f"the text of {each.title}", each.uri) for each in there]

    locator = GoldLocator(find_passages, lambda: [each.uri for each in there])
    first = EvalQuestion("a", documents=frozenset({"added:0", "added:1"}))
    both = EvalQuestion("b", documents=frozenset({"added:0", "added:2"}))
    texts = EvalQuestion("c", passages=(GoldPassage("T1", "the text of T1"),))
    later = EvalQuestion("d", passages=(GoldPassage("T2", "the text of T2"),))
    assert answered_questions([first, both, texts, later], cut[0], locator) == [first, texts]
    with pytest.raises(CommandError, match="none of the 2 questions is answered by segment 1"):
        answered_questions([both, later], cut[0], locator)


def test_chosen_segment_asks_the_questions_whose_gold_it_completes() -> None:
    documents = [entry(at, at) for at in range(4)]
    cut = segments(documents, 4)
    assert [chosen_segment(cut, str(number)).number for number in (1, 4)] == [1, 4]
    drawn = chosen_segment(cut, "random")
    assert drawn == chosen_segment(cut, "random")
    assert drawn in cut

    def locator(segment: Segment) -> GoldLocator:
        return GoldLocator(lambda *_: [], lambda: [each.uri for each in documents_of(segment, documents)])

    first = EvalQuestion("a", documents=frozenset({"added:0"}))
    second = EvalQuestion("b", documents=frozenset({"added:0", "added:1"}))
    third = EvalQuestion("c", documents=frozenset({"added:2"}))
    # Segment 2 brought added:1: the first question was answered before it, the third is not yet.
    asked = answered_questions([first, second, third], cut[1], locator(cut[1]), locator(cut[0]))
    assert [each.text for each in asked] == ["b"]


@pytest.mark.process
def test_questions_are_asked_as_of_the_end_of_each_segment(hippoctl: Shell, scripted: Scripted, tmp_path: Path) -> None:
    documents = [entry(0, 0), entry(1, 1), entry(2, 2)]

    found = answer(passage(1, "noise", "noise"), passage(2, "T0", "text 0", "added:0"), mode="hipporag2")
    scripted.answers |= {
        "GET /v1/documents": {"documents": [plain(each) for each in documents]},
        "POST /v1/query": found,
    }
    gold = {"title": "T0", "text": "text 0", "is_supporting": True}
    later = {"title": "T2", "text": "text 2", "is_supporting": True}
    questions = [{"question": "first?", "paragraphs": [gold]}, {"question": "later?", "paragraphs": [gold, later]}]
    (tmp_path / "q.json").write_text(json.dumps(questions))
    arguments = ["eval", "q.json", "--continual", "3", "--k", "1,4", "--mode", "hipporag2", "--set", "damping=0.4"]
    whole = hippoctl("--json", *arguments).json
    asked = [each.body for each in scripted.asked if each.path == "/v1/query" and each.body["mode"] == "hipporag2"]
    assert [each.get("as_of") for each in asked] == [
        "2026-03-01T00:00:59.999999+00:00", "2026-03-01T00:01:59.999999+00:00", None
    ]  # fmt: skip
    assert {each["query"] for each in asked} == {"first?"}
    assert all((each["mode"], each["k"], each["settings"]) == ("hipporag2", 4, {"damping": 0.4}) for each in asked)
    assert [(row["segment"], row["documents"], row["passages"]) for row in whole["segments"]] == [
        (1, 1, 1), (2, 2, 2), (3, 3, 3)
    ]  # fmt: skip
    assert [row["recall"]["4"] for row in whole["segments"]] == [1.0, 1.0, 1.0]
    assert whole["recall"] == whole["segments"][-1]["recall"]
    assert whole["n"] == 1
    head, *rows, last = hippoctl(*arguments).out.splitlines()
    assert head.split() == ["segment", "documents", "passages", "recall@1", "recall@4", "all@1", "all@4"]
    assert [row.split()[0] for row in rows] == ["1", "2", "3"]
    assert last.startswith("1 question of 2, answered by the first segment")
    scripted.asked.clear()
    refused = [
        hippoctl("eval", "q.json", *wrong) for wrong in (["--segment", "1"], ["--continual", "3", "--segment", "4"])
    ]
    assert [each.code for each in refused] == [2, 2]


def test_continual_with_fewer_than_two_segments_is_a_usage_error(here: Here, tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text("[]")
    assert here("eval", "q.json", "--continual", "1").code == 2
