"""A followed folder knows every document below it, whether or not a position came with it: none outlives its file."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from consumers.types import FileChanged, FileEvent, FileRemoved
from daemon.pipeline.commit.batching import DocumentsByFile
from daemon.sources.folder import FolderSection, FolderSource
from store.types import Document


def scanned(folder: Path, documents: list[str]) -> dict[str, type[FileEvent]]:
    """What the first scan emits where these documents are in the memory without a position."""
    events: dict[str, type[FileEvent]] = {}
    pipeline: Any = SimpleNamespace(
        documents_by_file=DocumentsByFile(Document(uri, str(folder)) for uri in documents),
        file_events=SimpleNamespace(
            emit=lambda event: events.__setitem__(event.uri, type(event)), touched=lambda *_: None
        ),
        follow_folder=lambda *_: None,
    )
    followed = FolderSource(FolderSection(path=folder), pipeline, {})
    assert followed.unread() == f"{folder} has not been looked through since the start"

    async def scan() -> None:
        followed.start()
        try:
            await followed.delivered()
            assert followed.unread() is None
        finally:
            await followed.stop()

    asyncio.run(scan())
    return events


def test_the_document_of_a_file_that_is_gone_is_removed(tmp_path: Path) -> None:
    here = tmp_path / "here.log"
    here.write_text("it grew while it was read")
    gone, line = (tmp_path / "gone.log").as_uri(), (tmp_path / "gone.jsonl").as_uri()
    elsewhere = (tmp_path.parent / "elsewhere.txt").as_uri()
    assert scanned(tmp_path, [here.as_uri(), gone, f"{line}#1", f"{line}#2", elsewhere, "added:1"]) == {
        here.as_uri(): FileChanged,
        gone: FileRemoved,
        line: FileRemoved,
    }
