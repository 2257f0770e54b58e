"""Questions are read in the forms that the data sets of the papers have; a bad entry is named with what it lacks."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from cli.errors import CommandError
from cli.evaluation.questions import EvalQuestion, read_questions
from tests.cli.sample_answers import passage

TITLED = {"title": "Gauge", "text": "The gauge was built by Strand."}
POPQA = {
    "question": "What is Ada Kerr's occupation?", "obj": "politician", "possible_answers": '["politician", "polit."]',
    "o_wiki_title": "Politician", "o_aliases": '["statesman"]', "paragraphs": [TITLED],
}  # fmt: skip
COLUMNS = {
    "question": "Who built it?", "answer": "Strand",
    "supporting_facts": {"title": ["Gauge", "Gauge"], "sent_id": [0, 1]},
    "context": {"title": ["Gauge", "Noise"], "sentences": [["The gauge was built", " by Strand."], ["No."]]},
}  # fmt: skip


def read(tmp_path: Path, *entries: Any, lines: bool = False) -> list[EvalQuestion]:
    path = tmp_path / "q.json"
    path.write_text("\n".join(map(json.dumps, entries)) if lines else json.dumps(entries))
    return read_questions(path)


@pytest.mark.parametrize(
    ("entry", "text", "answers", "gold"),
    [
        (POPQA, "What is Ada Kerr's occupation?", ("politician", "polit.", "Politician", "statesman"), 1),
        ({"question": "a?", "reference": ["b", "B"], "contexts": [{**TITLED, "is_supporting": True}]}, "a?", ("b", "B"), 1),
        (COLUMNS, "Who built it?", ("Strand",), 1),
        ({"input": "a?", "answers": ["b"], "context": "long", "confusing_facts": "c", "length": "16k"}, "a?", ("b",), 0),
        ({"question": {"text": "a?", "tokens": ["a", "?"]}, "answers": [{"text": "B."}, {"text": "b"}]}, "a?", ("B.", "b"), 0),
        ({"question": "a?", "reference_answer": [" B", "b "]}, "a?", (" B", "b "), 0),
        ({"question": "a?", "gold_ans": "b", "answer_aliases": ["c"]}, "a?", ("b", "c"), 0),
        ({"question": "a?", "answer": 1912}, "a?", ("1912",), 0),
    ],
    ids=["popqa", "nq", "hotpotqa columns", "lv-eval", "narrativeqa", "hgmem", "gold_ans", "number"],
)  # fmt: skip
def test_question_formats_of_the_datasets_are_read(
    tmp_path: Path, entry: dict[str, Any], text: str, answers: tuple[str, ...], gold: int
) -> None:
    for lines in (False, True):
        [question] = read(tmp_path, entry, lines=lines)
        assert (question.text, question.answers, question.gold) == (text, answers, gold)
        assert question.found([passage(1, "Gauge", "The gauge was  built by Strand.")]) == gold
    first, second = read(tmp_path, entry, entry, lines=True)
    assert (first.id, replace(second, id="1")) == ("1", first)


def test_claims_are_true_or_false_and_may_come_in_pairs(tmp_path: Path) -> None:
    read_claims = read(
        tmp_path,
        {"claim": "A holds.", "label": "TRUE"},
        {"content": "He had been a sailor.", "label": "contradict"},
        {"true_claim": "B holds.", "false_claim": "C holds.", "book": "x"},
        {"claim": "D holds.", "answer": False},
    )
    assert [(each.text, each.holds, each.pair) for each in read_claims] == [
        ("A holds.", True, None), ("A story from before the book: He had been a sailor.", False, None),
        ("B holds.", True, 3), ("C holds.", False, 3),
        ("D holds.", False, None),
    ]  # fmt: skip


def test_nocha_claims_with_the_same_index_form_a_pair(tmp_path: Path) -> None:
    entries = [
        {"book_title": "b", "claim": "Amy burns it in revenge.", "type": False, "index": 138, "genre": "historical"},
        {"book_title": "b", "claim": "They marry quietly.", "type": "True", "index": 148},
        {"book_title": "b", "claim": "Amy burns it out of anger.", "type": True, "index": 138},
        {"claim": "A row's number makes no pair.", "label": True, "type": "easy", "index": 138},
    ]
    first, second, third, fourth = read(tmp_path, *entries)
    assert [each.holds for each in (first, second, third, fourth)] == [False, True, True, True]
    assert first.pair == third.pair
    assert second.pair not in (None, first.pair)
    assert fourth.pair is None


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"answer": "b"}, "has no `question`"),
        ({"question": {"tokens": []}, "answers": ["b"]}, "has no `question.text`"),
        ({"input": " ", "answers": ["b"]}, "has no `input`"),
        ({"question": "a?"}, "names neither gold passages or documents nor an `answer`"),
        ({"question": "a?", "answer": [["b"]]}, "has an answer in `answer` that is neither text nor has a `text`"),
        ({"question": "a?", "paragraphs": [TITLED, {"title": "T"}]}, "has no `paragraphs[1].text`"),
        ({"question": "a?", "paragraphs": [{"text": "t"}]}, "has no `paragraphs[0].title`"),
        ({"question": "a?", "paragraphs": ["t"]}, "has paragraphs[0], which is not an object"),
        ({"question": "a?", "answer": "b", "supporting_facts": [["T", 0]]}, "without the `context`"),
        ({"question": "a?", "supporting_facts": [["T", 0]], "context": [["U", ["u"]]]}, "not in its `context`"),
        ({"question": "a?", "supporting_facts": [1], "context": []}, "of another form than"),
        ({"claim": "A holds."}, "is a claim without a `label`"),
        ({"claim": "A holds.", "label": "perhaps"}, "has the `label` 'perhaps'"),
        ({"claim": "A holds.", "type": "hard"}, "has the `type` 'hard'"),
        ({"true_claim": "A holds."}, "has no `false_claim`"),
        ([], "is not a JSON object"),
    ],
    ids=str,
)
def test_error_names_the_invalid_entry_and_its_missing_field(tmp_path: Path, entry: Any, said: str) -> None:
    good = {"question": "a?", "answer": "b"}
    with pytest.raises(CommandError) as raised:
        read(tmp_path, good, entry)
    assert raised.value.message.startswith(f"{tmp_path}/q.json[2] ")
    assert said in raised.value.message


@pytest.mark.parametrize("text", ["", " \n\n", "[]", '{"questions": []}'])
def test_file_without_questions_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "q.json"
    path.write_text(text)
    with pytest.raises(CommandError, match="contains no questions"):
        read_questions(path)


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"question": "a?", "answer": "b"}\n\n{"question": \n')
    with pytest.raises(CommandError, match=r"q\.jsonl\[2\] is not JSON"):
        read_questions(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(CommandError, match="is not UTF-8 text"):
        read_questions(path)


def test_json_lines_may_contain_the_line_separator_of_unicode(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"question": "a\u2028b?", "answer": "x"}\r\n{"question": "c?", "answer": "d\x85e"}\n', "utf-8")
    assert [question.text for question in read_questions(path)] == ["a\u2028b?", "c?"]


def test_published_parquet_file_of_prelude_is_read(tmp_path: Path) -> None:
    rows = [
        {"book_name": "A Tale", "char": "Amy", "content": "As a child she kept bees.", "label": "consistent"},
        {"book_name": "A Tale", "char": "Amy", "content": "She was born a queen.", "label": "contradict"},
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "all.parquet")
    first, second = read_questions(tmp_path / "all.parquet")
    assert (first.holds, second.holds, first.is_prequel, first.book) == (True, False, True, "A Tale")
    assert first.text == "Book: A Tale\nCharacter: Amy\nA story from before the book: As a child she kept bees."
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    with pytest.raises(CommandError, match=r"bad\.parquet is not a Parquet file"):
        read_questions(tmp_path / "bad.parquet")


def test_narrativeqa_csv_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "qaps.csv").write_text(
        "document_id,set,question,answer1,answer2,question_tokenized\n"
        'b7,test,"Who, then, rows?",The ferryman,A man\n'
        "b7,test,Who sings?,Amy,\n"
    )
    first, second = read_questions(tmp_path / "qaps.csv")
    assert (first.text, first.answers, first.book) == ("Who, then, rows?", ("The ferryman", "A man"), "b7")
    assert (second.answers, second.id) == (("Amy",), "2")


@pytest.mark.parametrize(
    ("given", "answers"),
    [
        ('["politician", "polit."]', ("politician", "polit.")),
        ("['politician', 'polit.']", ("politician", "polit.")),
        ("politician", ("politician",)),
        ("[politician", ("[politician",)),
        (["politician", "polit."], ("politician", "polit.")),
    ],
    ids=["JSON", "Python", "text", "neither", "list"],
)
def test_possible_answers_may_be_text(tmp_path: Path, given: Any, answers: tuple[str, ...]) -> None:
    [question] = read(tmp_path, {"question": "a?", "possible_answers": given})
    assert question.answers == answers


def test_question_ids_are_unique_within_a_file(tmp_path: Path) -> None:
    entry = {"question": "a?", "answer": "b"}
    assert [each.id for each in read(tmp_path, entry | {"_id": "x"}, entry, entry | {"id": 7})] == ["x", "2", "7"]
    assert [each.id for each in read(tmp_path, entry | {"id": "x"}, entry | {"id": "x"})] == ["x#1", "x#2"]
    pair = {"true_claim": "B holds.", "false_claim": "C holds.", "id": "p"}
    assert [each.id for each in read(tmp_path, pair)] == ["p:t", "p:f"]


def test_source_paragraphs_of_a_question_are_read(tmp_path: Path) -> None:
    [hgmem] = read(
        tmp_path, {"question": "a?", "reference_answer": ["b"], "origin_chunks": ["One.", {"content": "Two."}]}
    )
    assert (hgmem.sources, hgmem.gold) == (("One.", "Two."), 0)
    [gold] = read(tmp_path, {"question": "a?", "paragraphs": [TITLED]})
    assert gold.sources == ("Gauge\nThe gauge was built by Strand.",)


def test_scope_of_a_question_is_read_and_validated(tmp_path: Path) -> None:
    [question] = read(tmp_path, {"question": "a?", "answer": "b", "scope": {"in": ["/books/a"]}})
    assert question.scope == {"in": ["/books/a"]}
    with pytest.raises(CommandError, match=r"q\.json\[1\] has a `scope\.folder` that is not valid"):
        read(tmp_path, {"question": "a?", "answer": "b", "scope": {"folder": "x"}})
