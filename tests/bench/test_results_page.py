"""`python -m bench SECTION --page` replaces that section's tables on the benchmarks page and nothing else."""

import re
from pathlib import Path

import pytest

from bench.__main__ import SECTIONS
from bench.support.results_page import PAGE, write_section


def test_only_the_sections_own_block_changes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# P\n<!-- bench one -->\nold 1\n<!-- end -->\ntext\n<!-- bench two -->\nold 2\n<!-- end -->\n")
    write_section("two", "| \\1 |\n", "2026-11-26", page)
    assert page.read_text() == (
        "# P\n<!-- bench one -->\nold 1\n<!-- end -->\ntext\n"
        "<!-- bench two -->\nMeasured on 2026-11-26.\n\n| \\1 |\n<!-- end -->\n"
    )


def test_a_section_without_a_place_on_the_page_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# P\n")
    with pytest.raises(ValueError, match="no place for the section one"):
        write_section("one", "", "2026-11-26", page)


def test_every_block_of_the_page_belongs_to_a_section() -> None:
    text = PAGE.read_text("utf-8")
    named = re.findall(r"<!-- bench (\w+) -->", text)
    assert set(named) <= set(SECTIONS)
    assert len(named) == len(set(named)) == text.count("<!-- end -->")
