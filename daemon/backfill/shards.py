"""Divides the input into shards: pieces that one actor processes into one file of records.

The name of a shard's file depends only on the shard's content and on how it is processed, not on time, place, order or number
of runs. So a restarted backfill recognises finished shards by name. Small files form groups that end at certain file names, so
that adding or removing a file changes only one group.
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
"""On average, one of `GROUP_BOUNDARY` file names ends a group of small files."""
READ_BYTES = 4 << 20

Kind = Literal["files", "lines", "rows"]


class BackfillError(Exception):
    """The backfill cannot continue; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file: the URL of its input, its path in that file system, the URI of its documents, size and modification time."""

    url: str
    path: str
    uri: str
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Shard:
    """Whole files, or a part of one file: bytes (`lines`) or rows (`rows`) from `begin` to `end`. `first`: number of the first
    line or row, counted from 1."""

    kind: Kind
    files: tuple[InputFile, ...]
    begin: int = 0
    end: int = 0
    first: int = 1

    def file_name(self, settings: Mapping[str, Any]) -> str:
        """Returns the name of the file of records. `settings` contains the settings that `record_settings` returns."""
        files = [[file.uri, file.size, file.modified_ns] for file in self.files]
        content = [FORMAT, READER_VERSION, dict(settings), self.kind, files, self.begin, self.end, self.first]
        return f"{hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]}.parquet"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Shard":
        value = json.loads(text)
        return cls(**value | {"files": tuple(InputFile(**file) for file in value["files"])})


def shards(inputs: Sequence[str]) -> Iterator[Shard]:
    """Yields all shards of the inputs: folders, files, or URLs. Raises BackfillError."""
    for place in inputs:
        url = place if "://" in place else f"file://{Path(place).absolute()}"
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
        root_info = files.get_file_info(root)
        is_file = root_info.type is fs.FileType.File
        found = [root_info] if is_file else files.get_file_info(fs.FileSelector(root, recursive=True))
    except ValueError as error:
        raise BackfillError(str(error)) from None
    except OSError as error:
        raise BackfillError(explained(error, url)) from error
    excluded = _excluded_folders(files, root, found)
    for info in found:
        folder, _, name = info.path.rpartition("/")
        if info.type is fs.FileType.File and (is_file or not (folder in excluded or by_name(name, folder=False))):
            local = isinstance(files, fs.LocalFileSystem)
            uri = file_uri(info.path.encode()) if local else f"s3://{quote(info.path)}"
            yield InputFile(url, info.path, uri, info.size, info.mtime_ns or 0)


def _excluded_folders(files: fs.FileSystem, root: str, found: Sequence[fs.FileInfo]) -> set[str]:
    """Returns the folders below `root` that a default exclusion leaves out, including all their subfolders."""
    top = root.rstrip("/")
    content: dict[str, set[str]] = {}
    for info in found:
        folder, _, name = info.path.rpartition("/")
        # In an object store, a folder may exist only as part of the names of files.
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
    """Yields shards that end at line ends. Reads the whole file, but holds only one piece of the file in memory."""
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
