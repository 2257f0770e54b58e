"""What states nothing gives no statement and no name: instructions, headings, speakers. Names and key phrases are whole."""

import pytest

from memory.openie.rules.extractor import RulesExtractor
from memory.phrase_normalisation import normalise_phrase
from store.types import MENTION, Extraction, PassageText


def _extract(title: str, text: str) -> Extraction:
    return RulesExtractor().extract([PassageText("p", title, text)])[0]


@pytest.mark.parametrize(
    "text",
    [
        "Select Cards and drag Redbird to the dock.",
        "Open Settings.",
        "Press Ctrl and enter the name.",
        "To open Redbird, press Escape.",
        "Under Appearance, select Manage.",
        "In the Publish dialog, click Change Site Options.",
        "Then choose Cards in the menu.",
        "Don't open Redbird in Safari.",
        "If you use Safari, open Redbird again.",
        "## Install Redbird in Safari",
        "On a phone: Go to Redbird in Safari.",
        "redblur — Average the amp/freq time functions of each Redbird channel for a specified time.",
        "Sync your notes from Safari.",
        "Select More options in the Safari toolbar.",
        "Under Format choose Redbird.",
        "A[Your phone - file change]",
    ],
)
def test_an_instruction_or_heading_gives_nothing(text: str) -> None:
    found = _extract("Use the app", text)
    assert (found.triples, found.entities) == ((), ("use the app",))


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Mark Twain wrote Redbird.", ("mark twain", "wrote", "redbird")),
        ("Plan B costs 5 dollars.", ("plan b", "costs", "5 dollars")),
        ("In Oslo, Ann Lee founded Redbird.", ("ann lee", "founded", "redbird")),
        ("After the war, Mark Ek led Redbird.", ("mark ek", "led", "redbird")),
    ],
)
def test_statement_that_resembles_an_instruction_is_extracted(text: str, stated: tuple[str, str, str]) -> None:
    assert stated in _extract("Oslo › History", text).triples


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Limitations", "The maximum size depends on the standard plan."),
        ("Move a file to another window", "It goes to the main window of Redbird."),
        ("How we differ", "We believe in Redbird as a knowledge base."),
        ("Sync › History", "The history of Ann Lee is in Oslo. They keep it in Redbird."),
    ],
)
def test_the_title_of_a_section_or_task_is_no_subject(title: str, text: str) -> None:
    found = _extract(title, text)
    about = {*map(normalise_phrase, title.split(" › ")), *found.entities[:1]}
    assert [triple for triple in found.triples if triple[1] != MENTION and triple[0] in about] == []


def test_a_statement_has_a_verb() -> None:
    found = _extract("Ann Lee", "Ann Lee met Bo Ek, a driver, at Redbird in Oslo to see Rome.")
    assert ("redbird", MENTION, "oslo") in found.triples
    assert not {"in", "at", "to see"} & {predicate for _, predicate, _ in found.triples}


def test_a_name_with_a_contraction_is_one_phrase() -> None:
    found = _extract("Bo Ek", "Bo Ek sang \"Don't Stop Now\" in Oslo.\n\nНа сцене прозвучала песня Don't Look Back.")
    assert found.entities == ("bo ek", "don t stop now", "oslo", "don t look back")


@pytest.mark.parametrize(
    ("title", "text", "name"),
    [
        ("同步", "使用 Obsidian Sync 同步您的仓库。Obsidian Sync 由团队开发。", "obsidian sync"),
        ("同期", "Google Drive を使うと同期できます。", "google drive"),
    ],
)
def test_latin_names_keep_their_spaces_in_chinese_and_japanese(title: str, text: str, name: str) -> None:
    found = _extract(title, text).entities
    assert name in found
    assert name.replace(" ", "") not in found


def test_a_paragraph_without_names_gives_key_phrases_and_no_function_words() -> None:
    text = "если вы хотите, чтобы личное сообщение прочитали: личное сообщение видно, только если его не скрыли."
    found = _extract("Спам", text)
    assert "личное сообщение" in found.entities
    assert all(" " in name for name in found.entities[1:])
    assert not {"чтобы", "если", "его"} & {word for name in found.entities for word in name.split()}
