"""Texts that speak to their reader, and sections of documents: only direct statements are read."""

import pytest

from memory.openie.rules.extractor import RulesExtractor
from store.types import MENTION, PassageText, Triple

STATED = ("redbird sync", "stores files in", "oslo")


def _statements(title: str, text: str) -> set[Triple]:
    [extraction] = RulesExtractor().extract([PassageText("p1", title, text)])
    return {triple for triple in extraction.triples if triple[1] != MENTION}


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Redbird Sync stores the files in Oslo.", {STATED}),
        ("You can pay. Bo Ek wrote Redbird Sync.", {("bo ek", "wrote", "redbird sync")}),
        (
            "Bo Ek wrote Redbird Sync and moved to Oslo.",
            {("bo ek", "wrote", "redbird sync"), ("bo ek", "moved to", "oslo")},
        ),
        ("Ann Lee, who lives in Oslo, wrote your manual.", {("ann lee", "lives in", "oslo")}),
    ],
)
def test_subject_verb_and_complement_side_by_side_are_read(text: str, stated: set[Triple]) -> None:
    assert stated <= _statements("Settings › Devices", text)


@pytest.mark.parametrize(
    "text",
    [
        "When the phone is offline, Redbird Sync stores the files in Oslo.",
        "Redbird Sync stores the files in Oslo if the phone is offline.",
        "Redbird Sync usually stores the files in Oslo.",
        "On a phone, Redbird Sync stores the files in Oslo.",
        "This Redbird Sync stores the files in Oslo.",
        "Some Redbird Sync stores the files in Oslo.",
        "Stores the files in Oslo.",
        "Store the files in Oslo.",
    ],
)
def test_what_holds_only_under_a_condition_or_names_no_subject_is_not_read(text: str) -> None:
    assert not _statements("Settings › Devices", text)


def test_an_object_that_does_something_is_not_the_object_of_the_causing_verb() -> None:
    assert not _statements("Settings › Devices", "Redbird Sync lets the server read the notes.")


def test_a_denied_statement_is_complete_or_absent() -> None:
    said = "does not store files in"
    assert ("redbird sync", said, "oslo") in _statements(
        "Settings › Devices", "Redbird Sync does not store the files in Oslo."
    )
    assert not _statements("Settings › Devices", "Redbird Sync does not store the files in Oslo without a password.")


def test_an_article_that_speaks_to_nobody_is_read_in_full() -> None:
    text = "Ann Lee often lived in Oslo."
    assert ("ann lee", "lived in", "oslo") in _statements("Ann Lee", text)
    assert not _statements("Ann Lee", f"{text} There you can visit her house.")


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Ann Lee", "We know Ann Lee."),
        ("Ann Lee", "This page is about Ann Lee."),
        ("Ann Lee", f"Ann Lee reads `walk()` {'and ' * 60} sleeps."),
        ("Ann Lee", "\n- a list"),
        ("Ann Lee", "\n    an indented line"),
        ("#DOAP", ""),
        ("General Information", ""),
        ("Ann Lee Changelog", ""),
        ("A Library for Readers", ""),
    ],
)
def test_documentation_is_read_directly(title: str, text: str) -> None:
    indirect = "Ann Lee often lived in Oslo."
    assert ("ann lee", "lived in", "oslo") in _statements("Ann Lee", indirect)
    assert ("ann lee", "lived in", "oslo") not in _statements(title, f"{indirect} {text}")


def test_what_others_say_to_their_reader_makes_no_documentation() -> None:
    text = 'Ann Lee often lived in Oslo. "We see you here," she said.'
    assert ("ann lee", "lived in", "oslo") in _statements("Ann Lee", text)


def test_a_task_is_no_module() -> None:
    assert not _statements("How it works", "This module will parse the Redbird file.")


def test_a_name_of_common_words_is_not_meant_by_its_first_word() -> None:
    text = "Kerberos Package Roadmap. Kerberos opened the Redbird office in Oslo."
    assert "kerberos package roadmap" not in {subject for subject, _, _ in _statements("Ann Lee", text)}


def test_a_participle_without_a_subject_is_not_about_the_title() -> None:
    text = "With some file types, combining Redbird with a filter helps. Ann Lee often lived in Oslo."
    found = _statements("Ann Lee", text)
    assert {subject for subject, predicate, _ in found if predicate.startswith("combining")} == set()
    assert ("ann lee", "lived in", "oslo") in found


@pytest.mark.parametrize(
    "text",
    [
        "f10: Menu  ?: Help  q: Quit  u: Update",
        "|^2......|\n|^2111...|\n|221^1...|",
        "Alice->>+John: John, can you hear me?",
        "Choose Redbird → Sync: Open the log",
    ],
)
def test_a_screen_or_drawing_is_no_table(text: str) -> None:
    assert not _statements("Redbird Sync", text)


def test_a_title_that_names_a_kind_of_text_names_no_topic() -> None:
    text = "It is led by Ann Lee."
    assert ("tools of debian", "is led by", "ann lee") in _statements("Tools of Debian", text)
    assert not _statements("Overview of Debian Tools", text)


def test_a_file_s_ending_says_nothing_about_the_title() -> None:
    assert not _statements("Redbird Notes Import (.zip)", "")


def test_what_is_quoted_in_english_is_not_about_a_title_in_another_language() -> None:
    french = "Pour lier un bloc dans une note, il faut ajouter un identifiant à la fin du bloc que vous voulez citer."
    assert not _statements("Lier un bloc dans une note", f"{french}\n\nThis is the tale of Gemmy from Oslo.")
