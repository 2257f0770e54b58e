"""Gold passages are found in the parts into which hippod splits them, and those that the memory lacks are counted."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.evaluation.gold import RUN_CHARS, GoldPassage, containing_documents
from cli.evaluation.questions import EvalQuestion, GoldLocator
from cli.evaluation.scoring import recalls_at
from tests.cli.sample_answers import answer, passage
from tests.cli.scripted_daemon import Here, ReceivedRequest, Scripted

HALVES = (
    "Edda Vance forged the lantern in the year of the long frost, ",
    "and gave it to the wardens of Corl Tower at dusk.",
)
WHOLE = "".join(HALVES)
OTHER = "Tea is grown on the terraces of Sarn, where nobody ever saw a lantern."
FIRST, SECOND = (passage(rank, "Lantern", half, "added:1") for rank, half in enumerate(HALVES, 1))
NOISE = passage(3, "Lantern", OTHER, "added:1")
GOLD = GoldPassage("Lantern", WHOLE)


def test_part_of_a_split_gold_passage_counts_as_found() -> None:
    located = replace(GOLD, documents=frozenset({"added:1"}))
    # Without white space each half is a run of its own letters: all of its runs of 12 letters are in the whole: 1 ≥ 0.4.
    assert located.has_part(FIRST)
    assert located.has_part(SECOND)
    assert not located.has_part(NOISE), "the same document and title, another text"
    assert not located.has_part(replace_document(FIRST, "added:2")), (
        "the same text in a document that is not the gold one"
    )
    assert located.has_part(replace_document(FIRST, "added:2", also_in=["added:1"]))
    # 4 gold passages; 2 of them in the first passage's document, with the texts of both halves: recall 2/4 at 2, 1/4 at 1.
    second = GoldPassage("Lantern", HALVES[1], frozenset({"added:1"}))
    absent = tuple(GoldPassage(f"Absent {n}", OTHER, frozenset()) for n in "12")
    question = EvalQuestion("q?", passages=(located, second, *absent))
    assert recalls_at([1, 2, 3], question, [FIRST, SECOND, NOISE]) == [0.25, 0.5, 0.5]


@pytest.mark.parametrize(("shared", "is_part"), [(39, False), (40, True)])
def test_part_counts_as_gold_from_40_percent_of_shared_runs(shared: int, is_part: bool) -> None:
    letters = [chr(0x4E00 + at) for at in range(400)]  # no white space and no run of 12 twice
    # 111 letters have 100 runs of 12. `shared` runs are `shared` + 11 letters; the other letters are not in the gold text.
    text = "".join(letters[300 : 300 + 100 - shared]) + "".join(letters[: shared + RUN_CHARS - 1])
    gold = GoldPassage("T", "".join(letters[:200]), frozenset({"added:1"}))
    assert len(text) == 111
    assert gold.has_part(passage(1, "T", text, "added:1")) is is_part


def test_documents_with_the_gold_title_take_precedence() -> None:
    copy = passage(4, "Copy", WHOLE, "added:9")
    assert containing_documents(GOLD, [copy, FIRST, SECOND]) == {"added:1"}
    assert containing_documents(GOLD, [NOISE]) == frozenset()
    assert containing_documents(GOLD, [copy]) == {"added:9"}, "all of the text under another title"
    half = passage(5, "Copy", HALVES[0], "added:9")
    assert containing_documents(GOLD, [half]) == frozenset(), "half of the text under another title is less than 0.8"
    # Two documents of one title: one has all of the text, one has a half, which is less than 0.9 of that.
    assert containing_documents(GOLD, [FIRST, SECOND, passage(6, "Lantern", HALVES[0], "added:2")]) == {"added:1"}


def replace_document(found: Any, document: str, also_in: list[str] | None = None) -> Any:
    return found.model_copy(update={"document": document, "also_in": also_in or []})


def test_gold_missing_from_the_memory_is_listed_as_absent() -> None:
    uris = ["file:///drive/people/Emil%20Strand.docx", "added:7"]
    question = EvalQuestion(
        "q?",
        passages=(GOLD, GoldPassage("Tea", "No such text is anywhere in this memory.")),
        documents=frozenset({"people/Emil Strand.docx", "added:7", "gone.md"}),
    )
    located = GoldLocator(lambda _question, _text: [FIRST, SECOND, NOISE], lambda: uris).locate(question)
    assert located.absent == ("Tea", "gone.md")
    assert [gold.documents for gold in located.passages] == [{"added:1"}, frozenset()]


def test_absent_gold_counts_as_not_found_and_is_reported(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    def ranked(asked: ReceivedRequest) -> dict[str, Any]:
        return answer(*[NOISE, FIRST, SECOND][: asked.body["k"]], mode=asked.body["mode"])

    scripted.answers["POST /v1/query"] = ranked
    gold = {"title": "Lantern", "text": WHOLE}
    entries = [
        {"question": "a?", "paragraphs": [gold]},
        {"question": "b?", "paragraphs": [gold, {"title": "Gone", "text": "This is nowhere."}]},
    ]
    (tmp_path / "q.json").write_text(json.dumps(entries))
    arguments = ["eval", "q.json", "--mode", "dense", "--k", "1,2"]
    found = here("--json", *arguments).json
    # At 2 the first half is found: 1/1 for the first question, 1/2 for the second, whose other gold is not in the memory.
    assert (found["recall"], found["all"]) == ({"1": 0.0, "2": 0.75}, {"1": 0.0, "2": 0.5})
    assert (found["gold_passages"], found["gold_absent"]) == (3, 1)
    assert "1 of 3 gold passages are not in the memory; they count as not found" in here(*arguments).out.splitlines()
    looked = [asked.body for asked in scripted.asked if asked.body["mode"] == "bm25"]
    assert looked[0] == {"query": f"Lantern\n{WHOLE}", "k": 20, "mode": "bm25", "filter": "none"}
