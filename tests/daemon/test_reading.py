"""A retry finds out what became of its file: one that is gone is forgotten, one on a drive that is away fails once more."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from consumers.splitting import SplitSettings
from consumers.types import Document, FileChanged, Fingerprint
from daemon.pipeline.reading import Followed, Reader
from daemon.pipeline.work import Outcome, Work

UNKNOWN = Fingerprint(-1, -1, -1)
"""A retry does not know what the file is now."""


class Pool:
    """Finds no file."""

    async def parse(self, path: bytes, uri: str, settings: SplitSettings, **more: Any) -> AsyncIterator[Document]:
        yield Document(uri, error="the file is not there any more")


def outcome(folder: Path, fingerprint: Fingerprint) -> Outcome:
    async def read() -> list[Outcome]:
        reader = Reader(Pool(), SplitSettings(), lambda source: Followed(bytes(folder), False))  # type: ignore[arg-type]
        file = folder / "gone.md"
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
