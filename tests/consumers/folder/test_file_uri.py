"""A file's URI encodes its path byte for byte."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from consumers.folder import file_uri, path_of


@given(st.binary().filter(lambda path: b"\0" not in path))
@example(b"new\nline")
@example(b"\xff#?%41 +")
def test_any_path_survives_conversion_to_a_uri_and_back(path: bytes) -> None:
    uri = file_uri(b"/" + path)
    assert uri.isascii()
    assert uri.isprintable()
    assert path_of(uri) == b"/" + path
    assert path_of(uri + "#line-1") == b"/" + path


def test_file_uri_equals_that_of_pathlib() -> None:
    path = Path("/a b/ü#?%.txt")
    assert file_uri(bytes(path)) == path.as_uri()
    assert path_of("file://localhost/a%20b") == b"/a b"


@pytest.mark.parametrize("uri", ["kafka://topic/id", "file://host/a", "/a", "file:a", ""])
def test_other_uris_are_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="not the URI of a local file"):
        path_of(uri)


def test_a_relative_path_has_no_uri() -> None:
    with pytest.raises(ValueError, match="not an absolute path"):
        file_uri(b"a")
