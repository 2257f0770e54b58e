"""What there is to read, cut into shards: pieces of input that one actor reads, each into one file of records.

A shard's file is named after what it holds and how it is read, and by nothing else: not when, where, in which order or how
often. So whoever starts again sees by the names what is done. Small files are grouped at boundaries that their names choose, so
that a file that is added or removed changes one group alone.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import pyarrow.parquet as pq
from pyarrow import fs

from consumers.folder.file_uri import file_uri
from consumers.folder.tree.default_exclusions import CACHE_SIGNATURE, CACHE_TAG, by_name, excludes_folder
from consumers.types import READER_VERSION
from store.object_store import explained, file_system

FORMAT = 1
SHARD_BYTES = 4 << 20
SHARD_LINES = 256
SHARD_FILES = 64
GROUP_BOUNDARY = 16
"""Of so many file names one ends a group of small files."""
READ_BYTES = 4 << 20

Kind = Literal["files", "lines", "rows"]


class BackfillError(Exception):
    """The backfill cannot go on; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file: the URL of its input, its path in that file system, the URI of its documents, its size and time of change."""

    url: str
    path: str
    uri: str
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Shard:
    """Whole files; or of one file the bytes `begin` to `end` (`lines`), or the rows (`rows`). `first` counts from 1."""

    kind: Kind
    files: tuple[InputFile, ...]
    begin: int = 0
    end: int = 0
    first: int = 1

    def file_name(self, reading: Mapping[str, Any]) -> str:
        """`reading`: how it is read; see `reading_of`."""
        said = [[file.uri, file.size, file.modified_ns] for file in self.files]
        content = [FORMAT, READER_VERSION, dict(reading), self.kind, said, self.begin, self.end, self.first]
        return f"{hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]}.parquet"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Shard":
        value = json.loads(text)
        return cls(**value | {"files": tuple(InputFile(**file) for file in value["files"])})


def shards(inputs: Sequence[str]) -> Iterator[Shard]:
    """All shards of the inputs: folders, files, or URLs. Raises BackfillError."""
    for given in inputs:
        url = given if "://" in given else f"file://{Path(given).absolute()}"
        small: list[InputFile] = []
        for file in sorted(_input_files(url), key=lambda each: each.uri):
            if file.path.endswith(".jsonl"):
                yield from _line_shards(file)
            elif file.path.endswith(".parquet"):
                yield from _row_shards(file)
            else:
                small.append(file)
        yield from _groups(small)


def _input_files(url: str) -> Iterator[InputFile]:
    try:
        files, root = file_system(url)
        about = files.get_file_info(root)
        alone = about.type is fs.FileType.File
        found = [about] if alone else files.get_file_info(fs.FileSelector(root, recursive=True))
    except ValueError as error:
        raise BackfillError(str(error)) from None
    except OSError as error:
        raise BackfillError(explained(error, url)) from error
    excluded = _excluded_folders(files, root, found)
    for info in found:
        folder, _, name = info.path.rpartition("/")
        if info.type is fs.FileType.File and (alone or not (folder in excluded or by_name(name, folder=False))):
            local = isinstance(files, fs.LocalFileSystem)
            uri = file_uri(info.path.encode()) if local else f"s3://{quote(info.path)}"
            yield InputFile(url, info.path, uri, info.size, info.mtime_ns or 0)


def _excluded_folders(files: fs.FileSystem, root: str, found: Sequence[fs.FileInfo]) -> set[str]:
    """The folders below `root` that a default exclusion leaves out, with all below them."""
    top = root.rstrip("/")
    content: dict[str, set[str]] = {}
    for info in found:
        folder, _, name = info.path.rpartition("/")
        # In an object store, a folder may exist only as a part of names.
        while len(folder) >= len(top) and name not in content.setdefault(folder, set()):
            content[folder].add(name)
            folder, _, name = folder.rpartition("/")

    def is_cache(folder: str) -> bool:
        try:
            with files.open_input_stream(f"{folder}/{CACHE_TAG}") as tag:
                return bool(tag.read(len(CACHE_SIGNATURE)) == CACHE_SIGNATURE)
        except OSError:
            return False

    excluded: set[str] = set()
    for folder in sorted(content):
        above, _, name = folder.rpartition("/")
        if folder != top and (
            above in excluded or excludes_folder(name, content[above], content[folder], partial(is_cache, folder))
        ):
            excluded.add(folder)
    return excluded


def _groups(files: Iterable[InputFile]) -> Iterator[Shard]:
    group: list[InputFile] = []
    for file in files:
        group.append(file)
        chosen = hashlib.sha256(file.uri.encode()).digest()[0] % GROUP_BOUNDARY == 0
        if chosen or len(group) == SHARD_FILES or sum(each.size for each in group) >= SHARD_BYTES:
            yield Shard("files", tuple(group))
            group = []
    if group:
        yield Shard("files", tuple(group))


def _line_shards(file: InputFile) -> Iterator[Shard]:
    """Cut between lines. The whole file is looked at for its line ends, and no more than one piece of it is in memory."""
    begin = place = 0
    number = first = 1
    try:
        with file_system(file.url)[0].open_input_stream(file.path, compression=None) as stream:
            while piece := stream.read(READ_BYTES):
                at = 0
                while (found := piece.find(b"\n", at)) >= 0:
                    at, end, number = found + 1, place + found + 1, number + 1
                    if number - first == SHARD_LINES or end - begin >= SHARD_BYTES:
                        yield Shard("lines", (file,), begin, end, first)
                        begin, first = end, number
                place += len(piece)
    except OSError as error:
        raise BackfillError(explained(error, file.uri)) from error
    if place > begin:
        yield Shard("lines", (file,), begin, place, first)


def _row_shards(file: InputFile) -> Iterator[Shard]:
    try:
        with file_system(file.url)[0].open_input_file(file.path) as stream:
            rows = pq.read_metadata(stream).num_rows
    except (OSError, ValueError) as error:
        raise BackfillError(f"{file.uri} cannot be read as Parquet: {error}") from error
    for begin in range(0, rows, SHARD_LINES):
        yield Shard("rows", (file,), begin, min(begin + SHARD_LINES, rows), begin + 1)
