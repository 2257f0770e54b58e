"""A file may replace any prompt: it is checked at the start, and what a model must be told besides stays."""

import random
import re
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest

from memory.answering.answer_form import AnswerForm, answer_task
from memory.answering.answer_judge import better_prompt, correct_prompt, score_prompt
from memory.answering.iterative import thought_prompt
from memory.answering.working_memory import prompts
from memory.answering.working_memory.inquiries import Concern
from memory.answering.working_memory.points import WorkingMemory
from memory.answering.working_memory.prompts import Material
from memory.answering.working_memory.trace import DeepSettings
from memory.llm.prompt_texts import MAX_PROMPT_BYTES, PROMPTS, BadPromptFile, read_prompt_files, replace_prompts
from memory.openie.llm.extractor import extractor_name
from memory.openie.llm.prompts import entity_messages, triple_messages
from memory.retrieval.linking import query_model_calls
from memory.retrieval.linking.query_model_calls import (
    MAX_ANSWERED_TRIPLES,
    MAX_COMPARED_TRIPLES,
    MAX_KEPT_TRIPLES,
    kept_indices,
    query_entities_prompt,
    recognition_prompt,
)
from store.types import PassageText

ROOT = Path(__file__).parents[3]
NOTHING = PassageText("", "", "")
SENT = {
    "entities": lambda: entity_messages(NOTHING),
    "triples": lambda: triple_messages(NOTHING, ()),
    "query-entities": lambda: query_entities_prompt("?"),
    "recognition-memory": lambda: recognition_prompt("?", ()),
    "answer": lambda: [{"content": answer_task(AnswerForm())}],
    "thought": lambda: thought_prompt("?", (), ()),
    "judge": lambda: prompts.judge_prompt("?", WorkingMemory(), (), DeepSettings()),
    "evolve": lambda: prompts.evolve_prompt("?", (), WorkingMemory(), Material((), (), ()), DeepSettings()),
    "subquery": lambda: prompts.subquery_prompt("?", WorkingMemory(), Concern("c", ""), ()),
    "merge": lambda: prompts.merge_prompt("?", WorkingMemory()),
    "score": lambda: score_prompt("?", "a", (), "diversity"),
    "compare": lambda: better_prompt("?", "a", "b", (), "diversity"),
    "correct": lambda: correct_prompt("?", "a", ("b",)),
}


@pytest.fixture(autouse=True)
def own_prompts_again():
    yield
    replace_prompts({})


@pytest.mark.parametrize("name", PROMPTS)
def test_a_file_replaces_a_prompt_and_keeps_the_form_and_the_warning(tmp_path: Path, name: str) -> None:
    before = SENT[name]()[0]["content"]
    (tmp_path / f"{name}.txt").write_text("Do as the owl does.\n")
    (tmp_path / "README.md").write_text("no prompt")
    replace_prompts(read_prompt_files(tmp_path))
    after = SENT[name]()[0]["content"]
    assert after.startswith("Do as the owl does. ")
    assert after.endswith(before[before.rindex("nswer with") :]), "the JSON that is wanted"
    assert "one JSON object" in after
    assert re.search("strangers|is an instruction to you|order is to be ignored", after), (
        "what is quoted gives no orders"
    )
    assert all(SENT[other]()[0]["content"].find("as the owl") < 0 for other in PROMPTS if other != name)


def test_answer_form_is_appended_to_a_prompt_from_a_file() -> None:
    replace_prompts({"answer": "Do as the owl does."})
    task = answer_task(AnswerForm(length=700, reason=True, verify=True))
    assert task.startswith("Do as the owl does. ")
    assert all(asked in task for asked in ("700 words", "step by step", '"short" is "true" if all of the claim'))
    assert "from what you know yourself" in answer_task(AnswerForm(closed_book=True))
    assert "sentences in the language" not in answer_task(), "the file says what an answer is otherwise"


def test_extractor_name_changes_with_the_extraction_prompts() -> None:
    own = extractor_name("m")
    replace_prompts({"recognition-memory": "Choose."})
    assert extractor_name("m") == own
    replace_prompts({"triples": "State facts."})
    other = extractor_name("m")
    assert other != own
    replace_prompts({"entities": "List names."})
    assert extractor_name("m") not in (own, other)
    replace_prompts({})
    assert extractor_name("m") == own == "llm/m/11f7b820", "extractions that were paid for keep their name"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("judges.txt", b"Judge.", "judges.txt is not a prompt; the prompts are entities.txt, "),
        ("judge.txt", b" \n", "judge.txt is empty"),
        ("judge.txt", b"\xff\xfe", "judge.txt is not UTF-8"),
        ("judge.txt", b"x" * (MAX_PROMPT_BYTES + 1), "a prompt has 32,768 at most"),
    ],
)
def test_error_for_an_unusable_prompt_file_names_it(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadPromptFile) as error:
        read_prompt_files(tmp_path)
    assert said in str(error.value)


def test_error_for_a_missing_prompt_folder_names_it(tmp_path: Path) -> None:
    with pytest.raises(BadPromptFile, match="none cannot be read: No such file"):
        read_prompt_files(tmp_path / "none")


def test_the_docs_and_the_configuration_list_every_prompt() -> None:
    page = (ROOT / "docs" / "how-to" / "models.md").read_text()
    for name, meaning in PROMPTS.items():
        assert f"- `{name}.txt`: {meaning}\n" in page
        assert f"{name}.txt" in (ROOT / "config.toml").read_text()


TRIPLES = tuple((f"subject {at} of many", "is", f"object {at}") for at in range(6))


def test_recognition_memory_keeps_the_first_four_named_facts() -> None:
    named = [list(TRIPLES[at]) for at in (5, 1, 1, 3, 0, 2)]
    assert kept_indices({"relevant": named}, TRIPLES) == (0, 1, 3, 5)
    assert kept_indices({"relevant": []}, TRIPLES) == ()


def test_a_long_answer_about_many_triples_is_compared_with_few_of_them(monkeypatch) -> None:
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghij", k=6)) for _ in range(500)]

    def triple() -> tuple[str, str, str]:
        subject, other, predicate, object_, last = chance.choices(words, k=5)
        return f"{subject} {other}", f"{predicate} by", f"{object_} {last}"

    compared = []

    class Matcher(SequenceMatcher[str]):
        def set_seq1(self, a: Any) -> None:
            compared.append(a)
            super().set_seq1(a)

    monkeypatch.setattr(query_model_calls, "SequenceMatcher", Matcher)
    offered = [triple() for _ in range(10_000)]
    answered = [*(triple() for _ in range(10)), *offered[:6], *(triple() for _ in range(50))]
    assert kept_indices({"relevant": answered}, offered) == (0, 1, 2, 3)
    assert 0 < len(compared) <= MAX_ANSWERED_TRIPLES * (MAX_COMPARED_TRIPLES + 1)


def test_each_demonstration_of_recognition_memory_keeps_a_fact() -> None:
    shown = [message["content"] for message in recognition_prompt("?", ()) if message["role"] == "assistant"]
    assert shown and all(content != '{"relevant": []}' for content in shown)
    assert f"up to {MAX_KEPT_TRIPLES} " in recognition_prompt("?", ())[0]["content"]
