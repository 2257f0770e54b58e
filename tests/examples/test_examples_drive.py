"""The example drive is small, complete and what its sources say."""

import importlib.util
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from consumers.parsing import parse_file
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DRIVE = EXAMPLES / "drive"
FORMATS = {".txt", ".md", ".html", ".pdf", ".docx", ".pptx", ".xlsx", ".epub", ".csv", ".eml", ".json", ".jsonl"}
LONG_REPORT = "archive/candlemas-flood-1974.pdf"


def files() -> list[Path]:
    return sorted(path for path in DRIVE.rglob("*") if path.is_file())


def documents(path: Path, uri: str = "file:///x") -> Iterator[ParsedDocument]:
    for found in parse_file(os.fsencode(path), uri, SplitSettings()):
        if isinstance(found, ParsedDocument):
            yield found


def words(document: ParsedDocument) -> int:
    return sum(len(passage.text.split()) for passage in document.passages)


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    for library in ("docx", "pptx", "openpyxl", "fpdf"):
        pytest.importorskip(library)
    spec = importlib.util.spec_from_file_location("build_drive", EXAMPLES / "build_drive.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_example_drive_has_a_file_of_every_format() -> None:
    assert {path.suffix for path in files()} == FORMATS


@pytest.mark.slow
def test_every_file_is_read_without_an_error() -> None:
    read = {path.name: [d.error for d in documents(path)] for path in files()}
    assert all(errors and not any(errors) for errors in read.values()), read


@pytest.mark.slow
def test_there_are_at_least_forty_documents_and_no_two_the_same() -> None:
    texts = [tuple(p.text for p in d.passages) for path in files() for d in documents(path)]
    assert len(texts) >= 40
    assert max(Counter(texts).values()) == 1


@pytest.mark.slow
def test_documents_are_short_but_for_one_report_of_several_pages() -> None:
    sizes = {f"{p.relative_to(DRIVE).as_posix()} {d.uri}": words(d) for p in files() for d in documents(p)}
    long = [name for name, size in sizes.items() if size > 250]
    assert [name.split(" ")[0] for name in long] == [LONG_REPORT]
    assert min(sizes.values()) >= 50
    report = next(documents(DRIVE / LONG_REPORT))
    assert max(passage.location["page"] for passage in report.passages) == 3


def test_names_include_a_space_a_subfolder_and_a_letter_outside_ascii() -> None:
    names = [path.relative_to(DRIVE).as_posix() for path in files()]
    assert any(" " in name for name in names)
    assert any(not name.isascii() for name in names)
    assert all("/" in name for name in names)


def test_the_drive_is_small() -> None:
    assert sum(path.stat().st_size for path in files()) < 1_000_000


def test_lines_and_json_documents_have_the_contracts_fields() -> None:
    lines = (DRIVE / "archive/notebook.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    found.append(json.loads((DRIVE / "instruments/otter-current-meter.json").read_text(encoding="utf-8")))
    assert all({"id", "title", "text", "published_at"} == set(document) for document in found)
    assert len({document["id"] for document in found}) == len(found)


@pytest.mark.slow
def test_committed_built_files_equal_a_new_build(builder: ModuleType, tmp_path: Path) -> None:
    made = builder.build(tmp_path)
    assert {path.suffix for path in made} == set(builder.WRITERS)
    assert {path.as_posix() for path in made} == {
        path.relative_to(DRIVE).as_posix() for path in files() if path.suffix in builder.WRITERS
    }
    for path in made:
        [new], [committed] = list(documents(tmp_path / path)), list(documents(DRIVE / path))
        assert (new.title, new.passages) == (committed.title, committed.passages), path


@pytest.mark.slow
def test_building_twice_gives_the_same_bytes(builder: ModuleType, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for path in builder.build(first):
        builder.build(second) if not second.exists() else None
        assert (first / path).read_bytes() == (second / path).read_bytes(), path
