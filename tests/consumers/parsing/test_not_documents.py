"""What programs wrote for programs is skipped by its name, with the reason."""

from pathlib import Path

import pytest

from consumers.parsing import parse_data
from consumers.parsing.file_name import NOT_READ
from consumers.parsing.formats.registry import BY_ENDING
from consumers.splitting import SplitSettings

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "formats.md"
SKIPPED = {
    "style.css": "a style sheet",
    "jquery-3.min.js": "a minified script",
    "app.bundle.js": "a minified script",
    "app.js.map": "a source map",
    "searchindex.js": "a search index",
    "search_index.json": "a search index",
    "Logo.SVG": "a drawing",
    "package-lock.json": "a lock file",
    "poetry.lock": "a lock file",
    "module.pyc": "a program's object or cache",
}


@pytest.mark.parametrize(("name", "what"), SKIPPED.items())
def test_file_without_text_for_readers_is_skipped(name: str, what: str) -> None:
    (document,) = parse_data(b"/* words of a kind */ a { color: red }", f"/drive/{name}".encode(), "u", SplitSettings())
    assert document.skipped and (document.error or "").startswith(
        f"{what}, which contains no text for readers; exclude it"
    )


@pytest.mark.parametrize("name", ["searchindexes.txt", "lock.md", "css.html", "package-lock.txt", "min.js.txt"])
def test_files_with_names_that_resemble_skipped_ones_are_parsed(name: str) -> None:
    (document,) = parse_data(b"Some words here.", name.encode(), "u", SplitSettings())
    assert document.error is None


def test_no_ending_is_both_read_and_skipped() -> None:
    assert not {ending for kind in NOT_READ for ending in kind.endings} & BY_ENDING.keys()


def test_the_docs_list_what_is_skipped() -> None:
    rows = DOCS.read_text().splitlines()
    for kind in NOT_READ:
        listed = [*(f"`.{ending}`" for ending in kind.endings), *(f"`{name}`" for name in kind.names)]
        assert f"| {kind.title} | {', '.join(listed)} |" in rows
