"""Layout of backups in an object store: contents named by their digests, and one list of files per backup.

    PREFIX/objects/3f/3f9a…             a file's content, named by its SHA-256
    PREFIX/backups/20261123T021900.417Z-42.json.gz   the files of one backup; written last, so a backup is complete or absent

Transfers use pyarrow's file systems, because hippod depends on pyarrow anyway, and its S3 client is Amazon's own, which finds
credentials where the AWS tools do (environment, profiles, web identity, instance metadata).
"""

import calendar
import gzip
import json
import re
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from pyarrow import fs

from store.durable_files import PART, sync
from store.errors import StoreError
from store.object_store import again, explained, file_system

FORMAT = 1
LISTS = "backups"
OBJECTS = "objects"
LIST_END = ".json.gz"

Result = TypeVar("Result")


class BackupError(StoreError):
    """A backup cannot be sent or restored. The message says why, and what to do."""


class _NoneFound(OSError):
    """A listing is empty although it should not be."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a backup. With `inode` and `modified_ns`, the next backup from the same file system recognises the file
    without reading it."""

    digest: str
    size: int
    modified_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class FileList:
    """One backup: the memory as of `commit`, which was committed at `time` and backed up at `made` (both Unix seconds). File
    names are relative to the store's folder."""

    commit: int
    time: float
    made: float
    files: Mapping[str, FileEntry]

    @property
    def name(self) -> str:
        whole, part = divmod(int(self.made * 1000), 1000)
        return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(whole))}.{part:03}Z-{self.commit}{LIST_END}"


class Repository:
    """The backups of one memory below a URL: `s3://bucket/prefix`, or `file:///folder` for a mounted drive.

    A URL may also name one backup (`…/backups/NAME.json.gz`), which is then `chosen`. All methods raise BackupError.
    """

    def __init__(self, url: str) -> None:
        """Parses the URL without connecting to the server. Raises BackupError if the URL is invalid."""
        self.chosen: str | None = None
        if url.endswith(LIST_END):
            url, _, self.chosen = url.rpartition("/")
            url = url.removesuffix(f"/{LISTS}")
        try:
            self.files, self._root = file_system(url)
        except ValueError as error:
            raise BackupError(str(error)) from None
        self._local = isinstance(self.files, fs.LocalFileSystem)
        self.url = url.rstrip("/")

    def lists(self, *, expected: bool = False) -> list[str]:
        """Returns the names of all backups, oldest first. With `expected`, the listing is requested again if it is empty.

        A response that is cut off within its headers looks like an empty listing.
        """

        def once() -> list[str]:
            found = sorted(info.base_name for info in self._listing(LISTS) if _is_list(info.base_name))
            if not found and expected:
                raise _NoneFound
            return found

        try:
            return self.again(once, _NoneFound)
        except _NoneFound:
            return []

    def objects(self) -> dict[str, int]:
        """Returns the size of each stored content, by digest."""
        return {info.base_name: info.size for info in self._found(OBJECTS)}

    def objects_older_than(self, moment: float) -> set[str]:
        """Returns the digests of the contents written before `moment` (Unix seconds)."""
        return {info.base_name for info in self._found(OBJECTS) if info.mtime.timestamp() < moment}

    def read_list(self, name: str) -> FileList:
        try:
            path = f"{self._root}/{LISTS}/{name}"
            read = json.loads(self.again(lambda: self._content(path), FileNotFoundError, gzip.BadGzipFile))
            if read["format"] != FORMAT:
                raise BackupError(f"{self.url}: {name} has format {read['format']}, this hippod reads {FORMAT}")
            files = {str(path): FileEntry(**entry) for path, entry in read["files"].items()}
            if not all(isinstance(each.digest, str) and isinstance(each.size, int) for each in files.values()):
                raise TypeError("an entry has values of wrong types")
            return FileList(read["commit"], read["time"], read["made"], files)
        except FileNotFoundError as error:
            there = ", ".join(self.lists()[-5:]) or "none"
            raise BackupError(f"{self.url} has no backup {name}; its last backups: {there}") from error
        except (ValueError, KeyError, TypeError, AttributeError, zlib.error, gzip.BadGzipFile) as error:
            raise BackupError(
                f"{self.url}: the list of files {name} cannot be read ({error}); choose an older backup by its name"
            ) from error

    def _content(self, path: str) -> bytes:
        """Returns the decompressed content of a file. Raises BadGzipFile, an OSError, if the file is incomplete."""
        with self.files.open_input_stream(path, compression=None) as file:
            packed = bytes(file.read())
        try:
            return gzip.decompress(packed)
        except EOFError as error:
            raise gzip.BadGzipFile(str(error)) from error

    def write_list(self, listed: FileList) -> None:
        content = {
            "format": FORMAT,
            "commit": listed.commit,
            "time": listed.time,
            "made": listed.made,
            "files": {name: asdict(entry) for name, entry in listed.files.items()},
        }
        packed = gzip.compress(json.dumps(content, sort_keys=True).encode(), 6, mtime=0)
        self.again(lambda: self.put(f"{self._root}/{LISTS}/{listed.name}", [packed]))

    def put(self, path: str, pieces: Iterable[bytes]) -> None:
        """Writes a file, which appears under its name only once it is complete. A file on a mounted drive is synced."""
        # An object store publishes an object once its upload is complete.
        written = f"{path}{PART}" if self._local else path
        if self._local:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        with self.files.open_output_stream(written, compression=None) as file:
            for piece in pieces:
                file.write(piece)
        if self._local:
            sync(Path(written))
            Path(written).rename(path)
            sync(Path(path).parent)

    def object_path(self, digest: str) -> str:
        return f"{self._root}/{OBJECTS}/{digest[:2]}/{digest}"

    def remove(self, lists: Iterable[str], digests: Iterable[str]) -> None:
        """Deletes lists and contents; the lists first, so that no list ever names a missing content."""
        for name in lists:
            self.again(partial(self.files.delete_file, f"{self._root}/{LISTS}/{name}"))
        for digest in digests:
            self.again(partial(self.files.delete_file, self.object_path(digest)))

    def _found(self, folder: str) -> list[fs.FileInfo]:
        return self.again(lambda: self._listing(folder))

    def _listing(self, folder: str) -> list[fs.FileInfo]:
        selector = fs.FileSelector(f"{self._root}/{folder}", recursive=True, allow_not_found=True)
        found: list[fs.FileInfo] = self.files.get_file_info(selector)
        if not found and not self._local:
            # With `allow_not_found`, a missing bucket is listed like an empty bucket; this request raises an error if the
            # bucket is missing.
            self.files.get_file_info(fs.FileSelector(self._root.partition("/")[0]))
        return [info for info in found if info.type is fs.FileType.File]

    def again(self, once: Callable[[], Result], *passed: type[OSError], transfer: bool = False) -> Result:
        """Sends a request, with retries, because the client itself gives up after five broken connections. A `transfer` is
        retried on a mounted drive too. Errors of the types `passed` are raised unchanged."""
        try:
            return once() if self._local and not transfer else again(once)
        except passed:
            raise
        except OSError as error:
            raise self.failed(error) from error

    def failed(self, error: OSError) -> BackupError:
        """Converts a file system's error to a BackupError that explains it and says what to do."""
        return BackupError(explained(error, self.url))


def listed_at(name: str) -> float:
    """Returns the time of a backup (Unix seconds) according to its name."""
    return float(calendar.timegm(time.strptime(name[:15], "%Y%m%dT%H%M%S")))


def _is_list(name: str) -> bool:
    return re.fullmatch(r"\d{8}T\d{6}\.\d{3}Z-\d+" + re.escape(LIST_END), name) is not None
