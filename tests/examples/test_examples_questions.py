"""The questions name documents that exist, and most need several of them."""

import json
import os
import re
import string
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from consumers.parsing import parse_file
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DRIVE = EXAMPLES / "drive"
QUESTIONS: list[dict[str, Any]] = json.loads((EXAMPLES / "questions.json").read_text(encoding="utf-8"))
MULTI = [question for question in QUESTIONS if question["hops"] > 1]

_NAME = re.compile(r"[A-Z]\w+(?: (?:[A-Z]\w+|gauge|fluorometer|sampler|seismometer|hygrometer|drip counter))+")
_NOT_OF_A_NAME = re.compile(r"\b(?:The|A|In|Who|What|Where|Which|Later|Instead|Nowadays)\b")
_ONE_WORD_NAMES = {"Karrow", "Dunlin"}


@cache
def texts() -> dict[str, str]:
    """What each document of the drive says, titles included, by its path (and `#id` for a line)."""
    found: dict[str, str] = {}
    for path in sorted(DRIVE.rglob("*")):
        if path.is_file():
            name = path.relative_to(DRIVE).as_posix()
            for document in parse_file(os.fsencode(path), name, SplitSettings()):
                if isinstance(document, ParsedDocument):
                    said = [part for passage in document.passages for part in (passage.title, passage.text)]
                    uri = document.uri if document.uri.startswith(f"{name}#") else name
                    found[uri] = " ".join(" | ".join([document.title, *said]).split())
    return found


def names_in(text: str) -> set[str]:
    """Proper names of two words or more, without an article or a question word before them."""
    return set(_NAME.findall(_NOT_OF_A_NAME.sub("|", text)))


def test_example_has_30_questions_and_two_thirds_need_several_documents() -> None:
    assert len(QUESTIONS) >= 30
    assert 3 * len(MULTI) >= 2 * len(QUESTIONS)
    assert {question["hops"] for question in QUESTIONS} == {1, 2, 3}


def test_ids_and_questions_are_unique() -> None:
    assert len({question["id"] for question in QUESTIONS}) == len(QUESTIONS)
    assert len({question["question"] for question in QUESTIONS}) == len(QUESTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["id"])
def test_supporting_documents_exist_and_are_as_many_as_the_hops(question: dict[str, Any]) -> None:
    assert set(question) == {"id", "question", "answer", "documents", "hops"}
    assert set(question["documents"]) <= set(texts())
    assert len(set(question["documents"])) == len(question["documents"]) == question["hops"]
    assert question["question"].endswith("?") and question["answer"]


@pytest.mark.slow
@pytest.mark.parametrize("question", MULTI, ids=lambda question: question["id"])
def test_last_document_of_a_question_contains_no_name_of_the_question(question: dict[str, Any]) -> None:
    first, *_, last = (texts()[document] for document in question["documents"])
    names = names_in(question["question"])
    assert names, "a question starts from something with a name"
    assert any(name in first for name in names)
    assert not [name for name in names if name in last]


@pytest.mark.parametrize("question", MULTI, ids=lambda question: question["id"])
@pytest.mark.slow
def test_neighbouring_documents_share_a_name_that_the_question_does_not_have(question: dict[str, Any]) -> None:
    asked = names_in(question["question"])
    for here, there in pairwise(texts()[document] for document in question["documents"]):
        # A village or a ship of one word leads on as well as a name of two.
        words = {word for word in re.findall(r"[A-Z]\w{4,}", here) if re.search(rf"\b{word}\b", there)}
        assert (names_in(here) & names_in(there)) - asked or words & _ONE_WORD_NAMES


def test_last_document_contains_the_words_of_the_answer() -> None:
    missing = {}
    for question in QUESTIONS:
        said = texts()[question["documents"][-1]].lower().replace(",", "")
        wanted = [w for w in re.findall(r"[A-Z]\w+|\d[\d,]*", question["answer"]) if w not in ("She", "The")]
        lost = [word for word in wanted if word.lower().replace(",", "") not in said]
        if lost:
            missing[question["id"]] = lost
    assert not missing


def test_the_first_question_is_one_plain_line_over_two_documents() -> None:
    line = (EXAMPLES / "first-question.txt").read_text(encoding="utf-8")
    assert line.endswith("\n") and line.count("\n") == 1 and len(line) <= 80
    assert set(line.strip()) <= set(string.ascii_letters + string.digits + " ")
    [match] = [question for question in QUESTIONS if question["question"] == line.strip() + "?"]
    assert match["hops"] == 2
