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
def test_adjacent_subject_verb_and_complement_give_a_statement(text: str, stated: set[Triple]) -> None:
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
def test_conditional_sentences_and_sentences_without_subject_give_no_statement(text: str) -> None:
    assert not _statements("Settings › Devices", text)


def test_object_of_a_causative_verb_gives_no_statement() -> None:
    assert not _statements("Settings › Devices", "Redbird Sync lets the server read the notes.")


def test_a_denied_statement_is_complete_or_absent() -> None:
    said = "does not store files in"
    assert ("redbird sync", said, "oslo") in _statements(
        "Settings › Devices", "Redbird Sync does not store the files in Oslo."
    )
    assert not _statements("Settings › Devices", "Redbird Sync does not store the files in Oslo without a password.")


def test_article_without_second_person_gets_indirect_statements_too() -> None:
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
def test_documentation_gives_only_direct_statements(title: str, text: str) -> None:
    indirect = "Ann Lee often lived in Oslo."
    assert ("ann lee", "lived in", "oslo") in _statements("Ann Lee", indirect)
    assert ("ann lee", "lived in", "oslo") not in _statements(title, f"{indirect} {text}")


def test_quoted_second_person_does_not_make_a_text_documentation() -> None:
    text = 'Ann Lee often lived in Oslo. "We see you here," she said.'
    assert ("ann lee", "lived in", "oslo") in _statements("Ann Lee", text)


def test_this_module_under_a_task_title_gives_no_statement() -> None:
    assert not _statements("How it works", "This module will parse the Redbird file.")


def test_first_word_of_a_name_of_common_words_does_not_refer_to_it() -> None:
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
def test_screens_and_drawings_are_not_parsed_as_tables(text: str) -> None:
    assert not _statements("Redbird Sync", text)


def test_title_that_names_a_kind_of_text_is_no_subject() -> None:
    text = "It is led by Ann Lee."
    assert ("tools of debian", "is led by", "ann lee") in _statements("Tools of Debian", text)
    assert not _statements("Overview of Debian Tools", text)


@pytest.mark.parametrize("title", ["Redbird Notes Import (.zip)", "Redbird Notes Format (redbird)"])
def test_file_extension_or_repeated_word_in_a_title_gives_no_statement(title: str) -> None:
    assert not _statements(title, "")


def test_english_quotation_is_not_attributed_to_a_title_in_another_language() -> None:
    french = "Pour lier un bloc dans une note, il faut ajouter un identifiant à la fin du bloc que vous voulez citer."
    assert not _statements("Lier un bloc dans une note", f"{french}\n\nThis is the tale of Gemmy from Oslo.")


def test_items_of_a_long_list_do_not_describe_each_other() -> None:
    text = "Each split of Redbird has an amount, a Memo, a pointer to the parent, a flag, and a frame."
    assert not [triple for triple in _statements("Redbird Glossary", text) if triple[1].startswith("is")]


def test_end_of_an_overlong_sentence_gives_no_statement() -> None:
    authors = ", ".join(f"{name} Ek ({year})" for name in ("Ann", "Bo", "Carl", "Ida") for year in range(2001, 2009))
    found = _statements("socket(2) Manual", f"This document is written by {authors} and is released under the GPL2.")
    assert not [triple for triple in found if triple[2] == "gpl2"]


def test_a_quantity_or_an_infinitive_is_not_the_title() -> None:
    text = "Redbird Statements affect features of Oslo. However, some also affect main queues, which are large."
    assert "main queues" not in {object_ for _, _, object_ in _statements("Redbird Statements", text)}
    assert not _statements("Redbird Statements", "It is easiest to see in an enlarged screenshot of Oslo.")


def test_this_in_a_section_does_not_refer_to_the_section_title() -> None:
    text = "Redbird Sync stores the files in Oslo. This can be overridden with the Lantern option."
    assert _statements("Lantern › Redbird Sync", text) == {STATED}


def test_an_abbreviation_is_read_from_a_sentence_that_states_nothing() -> None:
    text = "What happens to the Performance Review Board (PRB) if you leave?"
    assert _statements("Settings › Leave", text) == {("performance review board", "also known as", "prb")}


def test_modal_without_a_main_verb_gives_no_statement() -> None:
    assert not _statements("Redbird", "The remaining warnings can either be bugs or correct code.")


def test_contraction_it_s_is_parsed_as_a_verb() -> None:
    assert ("redbird", "is represented by", "menu button") in _statements(
        "Redbird", "It's represented by a menu button."
    )


def test_parts_of_a_common_topic_are_not_replaced_by_the_title() -> None:
    text = "Inserts a column break of Redbird. The manual mark is shown by a dark blue line."
    assert {s for s, _, o in _statements("Column Break", text) if o == "dark blue line"} <= {"manual mark"}


@pytest.mark.parametrize("title", ["Mailbox (GNU Redbird Reference Manual)", "XREFfoo (GNU Redbird (version 7.3.0))"])
def test_manual_name_in_a_title_gives_no_statement(title: str) -> None:
    assert not _statements(title, "")


@pytest.mark.parametrize(
    "title",
    [
        "Concept Index",
        "Appendix D Function and variable index",
        "Redbird › Chapter 63 - Concept Index › R",
        "Index › A",
    ],
)
def test_index_entries_give_no_statement(title: str) -> None:
    assert not _statements(title, "Index Entry: dotchart; Section: Display graphics\n\nRedbird repeated an expansion")


@pytest.mark.parametrize(
    "row",
    [
        "Button 1: Memo; Button 2: contains; Button 3: Remove row",
        "type: integer; default: 600; mandatory: no; legacy directive: KeepAlive",
        "January: 100; February: 120; March: 130",
        "worker: lbstatus; a: 0; b: 0",
        "Action: Add a property; Shortcut: Cmd + ;; Note: -",
        "Property: image; Beschreibung: siehe Bild; Type: -",
        "属性: image; 描述: 参见图片; 類型: -",
        "プロパティ: image; 説明: 画像を参照してください; 型: -",
        "Stil: Fett; Syntax: *** *** oder ___ ___; Note: -",
        "Action: Move up and down by the height of the page that is visible; Shortcut: PageUp; Note: -",
    ],
)
def test_a_row_without_a_subject_or_a_value_states_nothing(row: str) -> None:
    assert not _statements("Redbird", row)


def test_other_rows_with_types_years_and_symbols_are_read() -> None:
    text = "Year: 1990; Film: Redbird Song; Role: Bo Ek\nType: Formula; Method: getFormula\nName: Lantern; Code: C++"
    found = _statements("Ann Lee", text)
    assert {("ann lee", "film", "redbird song"), ("formula", "method", "getformula")} <= found
    assert ("lantern", "code") in {(subject, predicate) for subject, predicate, _ in found}


SAMPLE = "Device ID: 34\nFirmware: Lantern release\nMaker: Bo Ek"


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Using Redbird", f"$ redbird-info --all\n\n{SAMPLE}"),
        ("Lantern › Redbird", f"Redbird prints what it knows.\n\n{SAMPLE}"),
        ("Bugs of Lantern", f"You may see this output.\n\n{SAMPLE}"),
        ("Redbird Bugs, Issues and Workarounds", "Seen on: Redbird Tower, Lantern Tower"),
        ("Lantern › Tags", "The tags are:\n\ntitle: the title of the song.\nartist: the artist of the song."),
    ],
)
def test_lines_of_names_and_values_in_documentation_are_not_about_the_title(title: str, text: str) -> None:
    assert not _statements(title, text)


def test_key_value_lines_at_the_start_of_a_note_describe_the_note() -> None:
    assert ("weekly meeting", "maker", "bo ek") in _statements("Weekly meeting", SAMPLE)
    cave = "Hollin Cave ends at a pool. You can visit it.\n\n- Length: 4.4 km\n- Access: by permit"
    assert ("hollin cave", "length", "4 4 km") in _statements("Hollin Cave", cave)


def test_header_cell_repeated_in_the_rows_is_not_a_column_name() -> None:
    rows = "Astro: Lantern One; Tower 205: Tower 301; Bird 60: Bird 76\nAstro: Lantern Two; Tower 205: Oslo; Bird 60: Bird 78"
    assert not _statements("Redbird Devices", rows)
