"""Documents are named as people write them, and what is shown names the same document when it is typed again."""

from pathlib import Path
from typing import Literal
from unicodedata import normalize

import pytest

from cli.document_names import as_uri, readable_uri
from cli.terminal_text import uri
from consumers.folder import file_uri
from daemon.services.documents.added_documents import added_uri

NAMES = [
    "/drive/日記/今日 notes.md",
    "/drive/July (2), [draft] & more's.md",
    "/drive/100% #1?.md",
    "/drive/%41 and %25.md",
    "/drive/two  spaces and an end ",
    "/drive/turned \u202e and soft\u00ad and\nnew line",
    "/drive/plain.md",
]


@pytest.mark.parametrize("name", NAMES)
def test_displayed_uri_can_be_typed_to_name_its_document(name: str) -> None:
    for canonical in (file_uri(name.encode()), f"{file_uri(name.encode())}#line-3 100%", added_uri(name)):
        assert as_uri(uri(canonical)) == canonical
        assert as_uri(canonical) == canonical


def test_displayed_uris_are_decoded_unless_ambiguous() -> None:
    assert readable_uri(file_uri("/drive/日記/July (2).md".encode())) == "file:///drive/日記/July (2).md"
    assert readable_uri("added:%C3%A9t%C3%A9%20100%25") == "added:été 100%25"
    assert readable_uri("kafka://news/%41") == "kafka://news/%41"
    not_utf8 = file_uri(b"/drive/\xff.md")
    assert as_uri(readable_uri(not_utf8)) == readable_uri(not_utf8) == not_utf8


def test_argument_is_a_relative_path_if_it_or_its_folder_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "drive").mkdir()
    (tmp_path / "drive/a b.md").touch()
    here = tmp_path.as_uri()
    assert [as_uri(name) for name in ("drive", "drive/a b.md", "drive/gone.md", "./gone.md", "..")] == [
        f"{here}/drive",
        f"{here}/drive/a%20b.md",
        f"{here}/drive/gone.md",
        f"{here}/gone.md",
        tmp_path.parent.as_uri(),
    ]
    for no_path in ("rain gauge", "absent/gone.md", "kafka://drive/x", '["a", "b/c", "d"]', "a" * 5000, "nul\x00"):
        assert as_uri(no_path) == no_path


@pytest.mark.parametrize("typed", ["NFC", "NFD"])
def test_typed_path_matches_any_unicode_normalisation_of_a_file_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: Literal["NFC", "NFD"]
) -> None:
    monkeypatch.chdir(tmp_path)
    apart, composed = normalize("NFD", "Übersicht.md"), normalize("NFC", "Küche")
    (tmp_path / composed).mkdir()
    (tmp_path / apart).touch()
    for there in (apart, composed):
        name, uri_there = normalize(typed, there), file_uri(bytes(tmp_path / there))
        assert [as_uri(each) for each in (name, f"./{name}", str(tmp_path / name))] == [uri_there] * 3
    gone = normalize(typed, "./verlorene Lösung.md")
    assert as_uri(gone) == file_uri(bytes(tmp_path / gone))
