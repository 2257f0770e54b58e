"""The files that `import` sends: one file, or those of a folder or an object store's prefix, as hippod-backfill wrote them."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cli.errors import CommandError
from cli.files import file_errors

if TYPE_CHECKING:
    from pyarrow import fs

PARQUET = ".parquet"


@dataclass(frozen=True, slots=True)
class RecordFile:
    name: str
    size: int
    open: Callable[[], AbstractContextManager[Any]]
    """Opens the file; the result's `read(size)` returns bytes."""


def record_files(place: str) -> Iterator[RecordFile]:
    """Yields at least one file, in order of their names. Raises CommandError."""
    if "://" in place:
        yield from _remote(place)
        return
    path = Path(place)
    with file_errors(place, "read"):
        found = sorted(path.glob(f"*{PARQUET}")) if path.is_dir() else [path]
        for each in found:
            each.open("rb").close()
            yield RecordFile(each.name, each.stat().st_size, partial(each.open, "rb"))
    if not found:
        raise CommandError(f"{place} contains no files of records (*{PARQUET}).")


def _remote(url: str) -> Iterator[RecordFile]:
    from pyarrow import fs  # takes a quarter of a second to load

    parts = urlsplit(url)
    path = (parts.netloc + parts.path).rstrip("/")
    if parts.scheme not in ("s3", "file") or not path:
        raise CommandError(f"{url} is not a location of record files; write a path, or s3://bucket/prefix.")
    try:
        files = _s3() if parts.scheme == "s3" else fs.LocalFileSystem()
        about = files.get_file_info(path)
        if about.type is fs.FileType.File:
            found = [about]
        else:
            found = [each for each in files.get_file_info(fs.FileSelector(path)) if each.path.endswith(PARQUET)]
        for each in sorted(found, key=lambda each: str(each.path)):
            opening = partial(files.open_input_stream, each.path, compression=None)
            yield RecordFile(each.base_name, each.size, opening)
    except OSError as error:
        raise CommandError(f"{url} cannot be read: {error}.") from None
    if not found:
        raise CommandError(f"{url} contains no files of records (*{PARQUET}).")


def _s3() -> "fs.FileSystem":
    """Returns the object store, with credentials as AWS tools find them and the server of AWS_ENDPOINT_URL, if set."""
    from pyarrow import fs

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if not endpoint:
        return fs.S3FileSystem()
    parts = urlsplit(endpoint)
    return fs.S3FileSystem(endpoint_override=parts.netloc + parts.path.rstrip("/"), scheme=parts.scheme)
