"""File URIs that preserve every byte of a path. Names need not be UTF-8 and may contain newlines, `#`, `?` and `%`."""

import os.path
from urllib.parse import quote_from_bytes, unquote_to_bytes

_PREFIX = "file://"


def file_uri(path: bytes) -> str:
    """Returns `file:///…` for an absolute path, as `pathlib.Path.as_uri` does. Raises ValueError if the path is relative."""
    if not path.startswith(b"/"):
        raise ValueError(
            f"{os.fsdecode(path)!r} is not an absolute path, so it has no file URI; make it absolute first."
        )
    return _PREFIX + quote_from_bytes(path)


def path_of(uri: str) -> bytes:
    """Returns the path that a file URI names, without its fragment (`….jsonl#id`). Raises ValueError for any other URI."""
    rest = uri.removeprefix(_PREFIX).removeprefix("localhost")
    if not uri.startswith(_PREFIX) or not rest.startswith("/"):
        raise ValueError(f"{uri!r} is not the URI of a local file; write it as file:///path/to/file.")
    return unquote_to_bytes(rest.partition("#")[0])
