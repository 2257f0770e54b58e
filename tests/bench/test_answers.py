"""`bench answers`: its own answers belong to the questions of 2Wiki."""

import json

import pytest

from bench.sections.quality.answers import ANSWERS, QUESTIONS
from bench.support.data import DATA


@pytest.mark.shared
def test_every_recorded_2wiki_answer_belongs_to_a_question() -> None:
    questions = {each["question"] for each in json.loads((DATA / "2wiki" / "questions.json").read_text("utf-8"))}
    answered = json.loads(ANSWERS.read_text("utf-8"))
    assert answered.keys() <= questions
    assert len(answered) == QUESTIONS
