"""`hippoctl eval` and `make bench` report the same recall, also for gold passages that hippod splits."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.support.questions.mode_comparison import KS, locate, recalls
from cli.evaluation.questions import read_questions
from tests.e2e.real_hippod import ROOT, Daemon

pytestmark = pytest.mark.daemon

TWO_WIKI = ROOT.parent / "shared" / "data" / "2wiki"
TITLES = ("Lantern", "Harbour", "Orchard", "Quarry")
SENTENCE = (
    "{title} record {number}: the warden of {title} counted {number} crates, and nobody asked about {title} again."
)
SHORT = {"title": "Note", "text": "A short note about the harbour."}
LONG = [
    {"title": title, "text": " ".join(SENTENCE.format(title=title, number=number) for number in range(120))}
    for title in TITLES
]
MODES = ("bm25", "dense", "hipporag2")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path_factory.mktemp("agrees"), encoder={"backend": "hash"})
    with daemon:
        documents = [*LONG, SHORT]
        if TWO_WIKI.exists():
            entries = json.loads((TWO_WIKI / "questions.json").read_text("utf-8"))
            paragraphs = [each for entry in entries for each in entry["paragraphs"] if each["is_supporting"]]
            documents += {(each["title"], each["text"]): each for each in paragraphs}.values()
        daemon.add(*({"id": str(at), **each} for at, each in enumerate(documents)))
        daemon.wait()
        yield daemon


def evaluate(daemon: Daemon, path: Path, *arguments: str) -> Any:
    ran = daemon.ctl("--json", "eval", str(path), *arguments)
    assert ran.code == 0, ran.err
    return ran.json


def test_bench_and_hippoctl_eval_report_the_same_recall(daemon: Daemon, tmp_path: Path) -> None:
    assert daemon.documents()["added:0"]["passages"] > 1, "the gold is split"
    path = tmp_path / "questions.json"
    absent = {"title": "Mill", "text": "No document says this."}
    questions = [
        {"question": f"What did the warden of {one['title']} count?", "paragraphs": [one, other]}
        for one, other in zip(LONG, [*LONG[1:], absent], strict=True)
    ]
    path.write_text(json.dumps(questions))
    located = locate(daemon, read_questions(path))
    found = evaluate(daemon, path, "--compare", ",".join(MODES), "--k", ",".join(map(str, KS)))
    assert (found["gold_passages"], found["gold_absent"]) == (8, 1)
    assert [each.absent for each in located] == [(), (), (), ("Mill",)]
    for row in found["modes"]:
        expected = recalls(daemon, located, row["mode"]).mean(axis=0).round(4).tolist()
        assert list(row["recall"].values()) == expected, row["mode"]
    # All passages are returned. Each of the first three questions has both gold passages, the last has 1 of 2: 3.5 / 4.
    everything = evaluate(daemon, path, "--mode", "bm25", "--k", "1000")
    assert (everything["recall"], everything["all"]) == ({"1000": 0.875}, {"1000": 0.75})


@pytest.mark.skipif(not TWO_WIKI.exists(), reason="needs ../shared/data/2wiki")
def test_all_gold_of_2wiki_is_found_when_all_passages_are_returned(daemon: Daemon) -> None:
    found = evaluate(daemon, TWO_WIKI / "questions.json", "--mode", "bm25", "--k", "1000")
    assert found["recall"] == {"1000": 1.0}
    assert (found["n"], found["gold_absent"]) == (51, 0)
