"""Parsing a file detects changes to the file, and to its folder, since the event."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from consumers.openat import FileAccess
from consumers.parsing import ParseSummary
from consumers.splitting import SplitSettings
from consumers.types import FileChanged, Fingerprint, ParsedDocument
from daemon.parser_pool.pool import Turn
from daemon.pipeline.commit.batching import make_batch
from daemon.pipeline.commit.content_index import DocumentsByFile
from daemon.pipeline.document_reader import DocumentReader
from daemon.pipeline.work_items import DocumentChange, RetryFile, Work
from store.types import Document, State

TOLD = Fingerprint(3, 4, 5, "digest")
RETRY = None
"""A retry does not know the file's present fingerprint."""


class Pool:
    """Returns the given items, or reports a missing file."""

    def __init__(self, *items: ParsedDocument | ParseSummary) -> None:
        self.items = items

    async def parse(
        self, path: bytes, uri: str, settings: SplitSettings, turn: Turn, *_more: Any
    ) -> AsyncIterator[Any]:
        for item in self.items or (ParsedDocument(uri, error="the file is not there any more"),):
            yield item


def outcome(
    folder: Path,
    fingerprint: Fingerprint | None,
    *items: ParsedDocument | ParseSummary,
    name: str = "gone.md",
    source: str | None = None,
) -> DocumentChange:
    """Returns the result of parsing a file of a followed folder; `source` is the source recorded in its document."""

    async def read() -> list[DocumentChange]:
        reader = DocumentReader(Pool(*items), SplitSettings())  # type: ignore[arg-type]
        reader.follow_folder(FileAccess(root=bytes(folder)))
        file = folder / name
        came_from = str(folder) if source is None else source
        named = file.as_uri(), bytes(file), came_from
        work = Work(named[0], FileChanged(*named, fingerprint) if fingerprint else RetryFile(*named), came_from)
        return [each async for each in reader.read(work)]

    [found] = asyncio.run(read())
    return found


def test_retry_of_a_deleted_file_removes_its_position(tmp_path: Path) -> None:
    (tmp_path / "other.md").touch()
    found = outcome(tmp_path, RETRY)
    assert not found.documents
    assert list(found.positions.values()) == [None]


@pytest.mark.parametrize("fingerprint", [TOLD, RETRY])
@pytest.mark.parametrize("there", [True, False])
def test_unmounted_drive_keeps_its_documents(tmp_path: Path, there: bool, fingerprint: Fingerprint | None) -> None:
    """The drive's mount point is empty or missing."""
    folder = tmp_path / "mounted"
    if there:
        folder.mkdir()
    assert_kept(outcome(folder, fingerprint))


def test_unmounted_drive_inside_the_folder_keeps_its_documents(tmp_path: Path) -> None:
    (tmp_path / "other.md").touch()
    (tmp_path / "mounted").mkdir()
    assert_kept(outcome(tmp_path, TOLD, name="mounted/deep/gone.md"))


def assert_kept(found: DocumentChange) -> None:
    """Asserts that the memory's document is unchanged, and that the folder's source must report it again."""
    earlier = Document(found.work.key, "earlier")
    assert not found.documents
    assert list(found.positions.values()) == [None]
    store = SimpleNamespace(document=lambda uri: earlier)
    batch = make_batch(store, DocumentsByFile([earlier]), [found])  # type: ignore[arg-type]
    assert (batch.documents, batch.removed) == ((), ())


def test_file_deleted_before_reading_fails_until_its_removal_arrives(tmp_path: Path) -> None:
    (tmp_path / "other.md").touch()
    found = outcome(tmp_path, TOLD)
    assert [document.error for document in found.documents]
    assert list(found.positions.values()) == [Fingerprint(3, 4, 5).to_json()], "it is not read as it comes back"


@pytest.mark.parametrize("changed", [False, True])
def test_file_changed_while_parsed_gets_a_position_without_digest(tmp_path: Path, changed: bool) -> None:
    """Without a position, the document would not be known if its file is deleted while hippod is down."""
    (tmp_path / "log").touch()
    summary = ParseSummary("read", 10, 11, 12, changed)
    found = outcome(tmp_path, TOLD, ParsedDocument("file:///log"), summary, name="log")
    assert list(found.positions.values()) == [Fingerprint(10, 11, 12, None if changed else "read").to_json()]


@pytest.mark.parametrize("source", ["below", "elsewhere"])
def test_retry_assigns_the_folder_that_now_follows_the_file(tmp_path: Path, source: str) -> None:
    """The document names the folder of an earlier configuration, which its parent has replaced."""
    below = tmp_path / "below"
    below.mkdir()
    (below / "report.pdf").touch()
    broken = ParsedDocument((below / "report.pdf").as_uri(), error="damaged")
    found = outcome(tmp_path, RETRY, broken, name="below/report.pdf", source=str(tmp_path / source))
    assert [(each.error, each.source, each.state) for each in found.documents] == [
        ("damaged", str(tmp_path), State.FAILED)
    ]
    assert found.work.source == str(tmp_path)


def test_retry_of_a_file_in_no_followed_folder_is_skipped(tmp_path: Path) -> None:
    found = outcome(tmp_path, RETRY, name=str(tmp_path.parent / "elsewhere.md"), source="earlier")
    assert [(each.source, each.state) for each in found.documents] == [("earlier", State.SKIPPED)]
    assert list(found.positions.values()) == [None]
