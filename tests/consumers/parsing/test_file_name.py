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
def test_a_name_of_the_same_format_changes_nothing_but_a_title_of_the_name(old: str, new: str) -> None:
    assert parses_alike(b"/x/" + old.encode(), b"/y/" + new.encode(), ["The title"])
    [document] = parse_data(b"words of the text,", old.encode(), "u", SplitSettings())
    assert not parses_alike(old.encode(), new.encode(), ["The title", document.title])


@pytest.mark.parametrize(("old", "new"), OTHER_FORMAT)
def test_a_name_of_another_format_is_read(old: str, new: str) -> None:
    assert not parses_alike(old.encode(), new.encode(), ["The title"])


def test_a_packed_file_s_title_may_be_that_of_the_name_within() -> None:
    for title in ("plain", "plain.md"):
        assert not parses_alike(b"plain.md.gz", b"other.md.gz", [title])


def test_a_file_that_keeps_its_name_in_another_folder_is_not_read() -> None:
    assert parses_alike(b"/attic/notes.txt", b"/cellar/notes.txt", ["notes"])
