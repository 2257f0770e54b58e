"""A folder of real-world manuals: navigation on every page, other formats and languages, files for programs only.

The texts are ours; their form is that of Sphinx, man pages, LaTeX, Org, reStructuredText and notebooks.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.e2e.real_hippod import Daemon

pytestmark = pytest.mark.daemon

DRIVE = Path(__file__).parent / "manual_drive"
NOT_READ = {"searchindex.js", "tarn.css", "logo.svg", "package-lock.json"}
QUESTIONS = {
    "Who designed the brass staff?": "calibrate.html",
    "On what does version 4.2 run?": "install.html",
    "exit status 4 tarnctl": "tarnctl.1",
    "Who reviews patches?": "CONTRIBUTING.rst",
    "How often does the gauge send a telegram?": "protocol.tex",
    "Where does Maren Dorn keep the spare radio?": "notes.org",
    "Which gauge drifts fastest?": "drift.ipynb",
    "Who chose the checksum?": "telegram.py",
    "Wie lange hält eine Batterie bei Frost?": "handbuch.html",
    "Wer hat die Batterien eingebaut?": "handbuch.html",
    "Quand reprend-on une sauvegarde manquée ?": "guide.html",
    "Qui a installé le serveur ?": "guide.html",
    "发电机由谁维护？": "手册.html",
    "太阳能电池板安装在哪里？": "手册.html",
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path_factory.mktemp("shelf"), encoder={"backend": "sentence-transformers"})
    shutil.copytree(DRIVE, daemon.drive, dirs_exist_ok=True)
    with daemon:
        daemon.wait()
        yield daemon
    print(daemon.log_text()[-6000:])


def name_of(uri: str) -> str:
    return unquote(uri).rpartition("/")[2]


def entries(daemon: Daemon, kind: str) -> list[dict[str, object]]:
    return [each for line in daemon.export() if (each := json.loads(line)).get("kind") == kind]


def test_files_with_text_are_indexed_and_files_for_programs_are_skipped(shelf: Daemon) -> None:
    states = {name_of(uri): document for uri, document in shelf.documents().items()}
    files = {path.name for path in DRIVE.rglob("*") if path.is_file()}
    assert {name for name, each in states.items() if each["state"] == "indexed"} == files - NOT_READ
    skipped = {name: each["error"] for name, each in states.items() if each["state"] == "skipped"}
    assert set(skipped) == NOT_READ
    assert all("contains no text for readers" in reason for reason in skipped.values())
    assert (shelf.status()["failed"], shelf.status()["pending"]) == (0, 0)


def test_no_passage_holds_navigation_or_marks_of_a_page(shelf: Daemon) -> None:
    texts = [str(each["text"]) for each in entries(shelf, "passage")]
    assert len(texts) > 15
    for left_out in (
        "¶",
        "previous",
        "Table of Contents",
        "Quick search",
        "Created using",
        "setIndex",
        "0xFF",
        "\\section",
    ):
        assert not [text for text in texts if left_out in text], left_out


@pytest.mark.parametrize(("question", "document"), QUESTIONS.items())
def test_a_question_finds_its_manual_first(shelf: Daemon, question: str, document: str) -> None:
    assert name_of(shelf.query(question, mode=None)[0]["document"]) == document


def test_direct_statements_become_triples_and_negations_are_kept(shelf: Daemon) -> None:
    """Below a section's heading, the rules take direct statements only; other sentences give phrases."""
    stated = {(str(each["subject"]), str(each["predicate"]), str(each["object"])) for each in entries(shelf, "triple")}
    assert ("brass staff", "was designed by", "halvar brink") in stated
    assert {"greta ibsen", "ilse grane", "卡特拉 隆德"} <= {str(each["text"]) for each in entries(shelf, "phrase")}
    for subject, predicate, object_ in stated:
        if "design" in predicate:
            assert {subject, object_}.isdisjoint({"signe falk", "oda lund"})
        if "support" in predicate or "wasserdicht" in object_:
            assert {"not", "no", "nicht"} & set(predicate.split()), (subject, predicate, object_)
        assert subject != "new gauge", "there is none"


def test_phrases_with_digits_have_no_synonym_edges(shelf: Daemon) -> None:
    numbered = [each for each in entries(shelf, "phrase") if any(sign.isdigit() for sign in str(each["text"]))]
    assert len(numbered) > 1
    for edge in (each for each in entries(shelf, "edge") if each["type"] == "synonym"):
        assert not any(sign.isdigit() for sign in f"{edge['source']}{edge['target']}"), edge


def test_answer_to_a_question_outside_the_manuals_is_weak(shelf: Daemon) -> None:
    answers = [
        shelf.ask("POST", "/v1/query", json={"query": text})
        for text in ("What is the capital of Mongolia?", "When is a tide gauge calibrated?")
    ]
    assert [answer["weak"] for answer in answers] == [True, False]
