"""When a file need not be read again under another name."""

import pytest

from consumers.parsing import parse_data, parses_alike
from consumers.splitting import SplitSettings

SAME_FORMAT = [("a.md", "b.md"), ("a.MD", "b.md"), ("a.txt.gz", "b.txt.gz"), ("told", "tale"), ("a.b.txt", "a.c.txt")]
OTHER_FORMAT = [
    ("a.md", "a.txt"),
    ("a.txt.gz", "a.jsonl.gz"),
    ("a.gz", "a.txt"),
    ("deps.json", "package-lock.json"),
    ("a.js", "a.min.js"),
    ("a.min.js.gz", "a.js.gz"),
    ("told", "told.txt"),
]


@pytest.mark.parametrize(("old", "new"), SAME_FORMAT)
def test_rename_within_a_format_changes_only_a_title_taken_from_the_name(old: str, new: str) -> None:
    assert parses_alike(b"/x/" + old.encode(), b"/y/" + new.encode(), ["The title"])
    [document] = parse_data(b"words of the text,", old.encode(), "u", SplitSettings())
    assert not parses_alike(old.encode(), new.encode(), ["The title", document.title])


@pytest.mark.parametrize(("old", "new"), OTHER_FORMAT)
def test_rename_to_another_format_requires_parsing(old: str, new: str) -> None:
    assert not parses_alike(old.encode(), new.encode(), ["The title"])


def test_title_of_a_gzip_file_may_come_from_its_inner_name() -> None:
    for title in ("plain", "plain.md"):
        assert not parses_alike(b"plain.md.gz", b"other.md.gz", [title])


def test_move_to_another_folder_requires_no_parsing() -> None:
    assert parses_alike(b"/attic/notes.txt", b"/cellar/notes.txt", ["notes"])
