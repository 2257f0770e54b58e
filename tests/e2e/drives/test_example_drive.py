"""A first use: the example drive with the packaged encoder, and the steps that the README shows."""

import json
import re
import shutil
from collections.abc import Iterator

import pytest

from cli.command_line import hippoctl
from tests.e2e.real_hippod import ROOT, Daemon, until

pytestmark = pytest.mark.daemon

EXAMPLES = ROOT / "examples"
README = ROOT / "README.md"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Yields a daemon on MiniLM that follows a copy of the example drive."""
    daemon = Daemon(tmp_path_factory.mktemp("lab"), encoder={"backend": "sentence-transformers"})
    shutil.copytree(EXAMPLES / "drive", daemon.drive, dirs_exist_ok=True)
    with daemon:
        daemon.wait()
        yield daemon
    print(daemon.log_text()[-6000:])


def test_every_document_of_the_example_drive_is_indexed(lab: Daemon) -> None:
    status = lab.status()
    assert "MiniLM" in status["encoder"]
    assert (status["failed"], status["pending"]) == (0, 0)
    assert status["documents"] >= 40
    assert {document["state"] for document in lab.documents().values()} == {"indexed"}


def test_first_question_is_answered_with_triples_and_file_paths(lab: Daemon) -> None:
    question = (EXAMPLES / "first-question.txt").read_text().strip()
    ran = lab.ctl("query", question)
    assert ran.code == 0
    assert "Triples" in ran.out
    assert str(lab.drive) in ran.out
    assert lab.ctl_json("query", question)["triples"]


def test_answer_is_marked_as_weak_if_its_best_match_is_weak(lab: Daemon) -> None:
    question = (EXAMPLES / "first-question.txt").read_text().strip()
    for mode in ("fused", "hipporag2", "dense", "hipporag"):
        asked, absent = (
            lab.ask("POST", "/v1/query", json={"query": text, "mode": mode, "explain": True})
            for text in (question, "What is the capital of Mongolia?")
        )
        assert (asked["weak"], absent["weak"]) == (False, True)
        for passage, why in zip(asked["passages"], asked["explain"]["passages"], strict=True):
            assert passage["cosine"] == pytest.approx(why["similarity"], abs=1e-6)
    words = lab.ask("POST", "/v1/query", json={"query": question, "mode": "bm25"})
    assert "weak" not in words and words["passages"] and all("cosine" not in each for each in words["passages"])
    assert lab.ctl("query", "What is the capital of Mongolia?").out.startswith("Nothing here answers this well.\n")


def test_supporting_documents_of_the_example_questions_are_in_the_top_five(lab: Daemon) -> None:
    questions = json.loads((EXAMPLES / "questions.json").read_text())
    found = 0
    multi = [question for question in questions if question["hops"] > 1]
    for question in multi:
        first = {passage["document"] for passage in lab.query(question["question"], "hipporag2", k=5)}
        found += all(uri_of(lab, name) in first for name in question["documents"])
    assert found >= 0.85 * len(multi)


def uri_of(daemon: Daemon, name: str) -> str:
    """Returns the URI of a document of the drive; `file.jsonl#id` is a line's."""
    file, _, line = name.partition("#")
    return daemon.uri(file) + (f"#{line}" if line else "")


def test_added_and_deleted_file_changes_answers_and_restores_the_export(lab: Daemon) -> None:
    exported = lab.export()
    uri = lab.write("quill-lamp.md", "# Quill lamp\nThe Quill lamp was built by Sabine Rell for Project Attic.\n")

    def answering() -> list[str]:
        return [passage["document"] for passage in lab.query("Who built the lamp of Project Attic", "hipporag2", k=3)]

    until(lambda: uri in answering(), "the new document answers")
    (lab.drive / "quill-lamp.md").unlink()
    until(lambda: uri not in lab.documents(), "it is not listed")
    assert uri not in answering()
    assert lab.export() == exported


def test_a_restart_answers_the_same(lab: Daemon) -> None:
    question = (EXAMPLES / "first-question.txt").read_text().strip()
    before, exported = lab.query(question, "hipporag2"), lab.export()
    lab.restart()
    assert lab.wait()["pending"] == 0
    assert lab.export() == exported
    after = lab.query(question, "hipporag2")
    assert [passage["id"] for passage in after] == [passage["id"] for passage in before]
    assert [passage["score"] for passage in after] == pytest.approx([passage["score"] for passage in before], rel=1e-6)


@pytest.mark.skipif(not README.exists(), reason="there is no README yet")
def test_every_command_that_the_readme_names_exists() -> None:
    named = set(re.findall(r"hippoctl (?:--\S+ \S+ )?([a-z]+)\b", README.read_text("utf-8")))
    assert named
    assert named <= set(hippoctl.commands)
