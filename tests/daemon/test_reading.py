"""A retry finds out what became of its file: one that is gone is forgotten, one on a drive that is away fails once more."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from consumers.parsing import ParseSummary
from consumers.splitting import SplitSettings
from consumers.types import Document, FileChanged, Fingerprint
from daemon.pipeline.reading import Followed, Reader
from daemon.pipeline.work import Outcome, Work

TOLD = Fingerprint(3, 4, 5, "digest")
UNKNOWN = Fingerprint(-1, -1, -1)
"""A retry does not know what the file is now."""


class Pool:
    """Gives what it is told to; finds no file otherwise."""

    def __init__(self, *items: Document | ParseSummary) -> None:
        self.items = items

    async def parse(self, path: bytes, uri: str, settings: SplitSettings, **more: Any) -> AsyncIterator[Any]:
        for item in self.items or (Document(uri, error="the file is not there any more"),):
            yield item


def outcome(folder: Path, fingerprint: Fingerprint, *items: Document | ParseSummary, name: str = "gone.md") -> Outcome:
    async def read() -> list[Outcome]:
        reader = Reader(Pool(*items), SplitSettings(), lambda source: Followed(bytes(folder), False))  # type: ignore[arg-type]
        file = folder / name
        work = Work(file.as_uri(), FileChanged(file.as_uri(), bytes(file), str(folder), fingerprint), 1, str(folder))
        return [each async for each in reader.read(work)]

    [found] = asyncio.run(read())
    return found


def test_a_retry_of_a_file_that_is_gone_forgets_it(tmp_path: Path) -> None:
    (tmp_path / "other.md").touch()
    found = outcome(tmp_path, UNKNOWN)
    assert not found.documents
    assert list(found.positions.values()) == [None]


@pytest.mark.parametrize("there", [True, False])
def test_a_drive_that_is_away_loses_nothing(tmp_path: Path, there: bool) -> None:
    """Its mount point is empty, or not there."""
    folder = tmp_path / "mounted"
    if there:
        folder.mkdir()
    assert [document.error for document in outcome(folder, UNKNOWN).documents]


def test_a_file_that_went_while_its_change_was_on_the_way_fails_until_its_removal_comes(tmp_path: Path) -> None:
    (tmp_path / "other.md").touch()
    assert [document.error for document in outcome(tmp_path, Fingerprint(3, 4, 5)).documents]


@pytest.mark.parametrize("changed", [False, True])
def test_what_changed_while_it_was_read_has_a_position_that_says_so(tmp_path: Path, changed: bool) -> None:
    """Without any, nobody would know of the document once its file is deleted while hippod is down."""
    (tmp_path / "log").touch()
    summary = ParseSummary("read", 10, 11, 12, changed)
    found = outcome(tmp_path, TOLD, Document("file:///log"), summary, name="log")
    assert list(found.positions.values()) == [Fingerprint(10, 11, 12, None if changed else "read").to_json()]
