"""Uploads for `add` and `import`: documents in requests of limited size, and files of records.

An invalid document does not block other documents. Every HippoRAG corpus numbers its documents from 0; `CorpusCheck` keeps a
corpus from replacing another corpus's documents. Records come from one file, or from all files of hippod-backfill in a folder
or below a prefix of an object store.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cli.client.http import Client, RequestRefused
from cli.document_files import TOO_LARGE, ReadyDocument, RejectedDocument
from cli.errors import CommandError
from cli.files import file_errors
from daemon.contract.choices import DocumentState
from daemon.contract.http.routes import ProblemType, Route

if TYPE_CHECKING:
    from pyarrow import fs

BATCH_COUNT = 1_000
BATCH_BYTES = 4 * 1024 * 1024
"""Maximum size of one request. A single larger document is sent alone."""
_DOCUMENT_INDEX = re.compile(r"(?:documents|docs)[.\[](\d+)")
Send = Callable[[bytes], dict[str, Any]]
COMPARED_DOCUMENTS = 20
"""Number of documents of a corpus that are compared with the memory: evenly spread, including the first and the last."""
WAIT_S = 600.0
"""Maximum number of seconds to wait for a document that is not committed yet."""
POLL_S, MAX_POLL_S = 0.5, 5.0
"""First and longest pause between two looks at a pending document."""
PARQUET = ".parquet"


def batches(
    pieces: Iterable[ReadyDocument], count: int = BATCH_COUNT, size: int = BATCH_BYTES
) -> Iterator[list[ReadyDocument]]:
    """Yields the pieces in order, in lists of at most `count` pieces and `size` bytes."""
    batch: list[ReadyDocument] = []
    batch_bytes = 0
    for piece in pieces:
        if batch and (len(batch) == count or batch_bytes + len(piece.body) > size):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(piece)
        batch_bytes += len(piece.body) + 1
    if batch:
        yield batch


def send(batch: list[ReadyDocument], post: Send) -> Iterator[dict[str, Any] | RejectedDocument]:
    """Posts `{"documents": batch}`, and yields the answers and the rejected documents.

    Rejected documents are left out of the next request. If the daemon's answer does not name the rejected documents, the batch
    is halved until they are isolated.
    """
    body = b'{"documents":[%s]}' % b",".join(piece.body for piece in batch)
    try:
        yield post(body)
    except RequestRefused as refused:
        if refused.type not in (ProblemType.INVALID, ProblemType.BAD_REQUEST, ProblemType.TOO_LARGE):
            raise
        if len(batch) == 1:
            message = TOO_LARGE if refused.type == ProblemType.TOO_LARGE else refused.message
            yield RejectedDocument(batch[0].where, message)
            return
        wrong = _refused_documents(refused, len(batch))
        for at in sorted(wrong):
            yield RejectedDocument(batch[at].where, wrong[at])
        rest = [piece for at, piece in enumerate(batch) if at not in wrong]
        parts = [rest] if wrong else [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
        for part in parts:
            if part:
                yield from send(part, post)


def _refused_documents(refused: RequestRefused, length: int) -> dict[int, str]:
    """Returns the daemon's error message for each rejected piece of the batch, by index."""
    errors = refused.problem.get("errors") if refused.problem else None
    wrong: dict[int, str] = {}
    for error in errors if isinstance(errors, list) else []:
        match = _DOCUMENT_INDEX.search(str(error.get("field", ""))) if isinstance(error, dict) else None
        if match and int(match[1]) < length:
            message = f"{str(error['field'])[match.end() :].lstrip('.]')}: {error.get('message', refused.message)}"
            wrong.setdefault(int(match[1]), message.lstrip(": "))
    return wrong


class CorpusCheck:
    """Compares documents of a corpus with the memory's documents of the same ids."""

    def __init__(self, client: Client, id_prefix: str) -> None:
        self._client = client
        self._id_prefix = id_prefix

    def refuse(self, path: Path, documents: Sequence[dict[str, Any]]) -> str | None:
        """Returns why the corpus must not be added: one of its ids belongs to a document with another title. None if it may be
        added."""
        last = len(documents) - 1
        places = sorted({round(at * last / max(COMPARED_DOCUMENTS - 1, 1)) for at in range(COMPARED_DOCUMENTS)})
        for document in (documents[place] for place in places):
            uri = f"added:{f'{self._id_prefix}/' if self._id_prefix else ''}{document['idx']}"
            title = str(document.get("title", ""))
            there = self._title(uri)
            if there is not None and _plain(there) != _plain(title):
                return (
                    f'would replace other documents: {uri} is "{there[:80]}", and here it is "{title[:80]}"; nothing of this '
                    f"file was added. Add it with --id-prefix {path.stem} to keep both, or with --replace"
                )
        return None

    def _title(self, uri: str) -> str | None:
        """Returns the title of the document with this URI, or None."""
        end, pause_s = time.monotonic() + WAIT_S, POLL_S
        while (entry := self._entry(uri)) is not None:
            if entry.get("state") != DocumentState.PENDING or time.monotonic() > end:
                return str(entry.get("title", ""))
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_POLL_S)
        return None

    def _entry(self, uri: str) -> dict[str, Any] | None:
        answer = self._client.call("GET", Route.DOCUMENTS, params={"prefix": uri, "limit": 1})
        documents: list[dict[str, Any]] = answer.get("documents", [])
        return documents[0] if documents and documents[0].get("uri") == uri else None


def _plain(title: str) -> str:
    return " ".join(title.split())


@dataclass(frozen=True, slots=True)
class RecordFile:
    name: str
    size: int
    open: Callable[[], AbstractContextManager[Any]]
    """Opens the file; the result's `read(size)` returns bytes."""


def record_files(place: str) -> Iterator[RecordFile]:
    """Yields the files of records, at least one, by name. Raises CommandError."""
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
