"""The knowledge of a followed folder at its start: every document below it, and which files the memory has parsed unchanged."""

import asyncio
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from consumers.folder.tree.file_status import read_fingerprint
from consumers.types import EMPTY, FileChanged, FileEvent, FileRemoved
from daemon.pipeline.commit.content_index import DocumentsByFile
from daemon.pipeline.ownership import Claim, OwnerKind, Owners
from daemon.sources.folder import FOLDER, FolderSection, FolderSource
from store.types import Document


def scanned(
    folder: Path, documents: Iterable[Document], positions: Mapping[str, Any], claims: Iterable[Claim] = ()
) -> dict[str, type[FileEvent]]:
    """Returns the events of the first scan for a memory with these documents and positions."""
    events: dict[str, type[FileEvent]] = {}
    section = FolderSection(path=folder)
    by_uri = {document.uri: document for document in documents}
    pipeline: Any = SimpleNamespace(
        documents_by_file=DocumentsByFile(by_uri.values()),
        owners=Owners([*FOLDER.claims(section), *claims]),
        file_events=SimpleNamespace(
            emit=lambda event: events.__setitem__(event.uri, type(event)), touched=lambda *_: None
        ),
        follow_folder=lambda *_: None,
    )
    store: Any = SimpleNamespace(positions=positions, document=by_uri.get)
    followed = FolderSource(section, pipeline, store)
    assert followed.pending_note() == f"{folder} has not been scanned since the start"

    async def scan() -> None:
        followed.start()
        try:
            await followed.delivered()
            assert followed.pending_note() is None
        finally:
            await followed.stop()

    asyncio.run(scan())
    return events


def test_first_scan_removes_documents_of_deleted_files(tmp_path: Path) -> None:
    here = tmp_path / "here.log"
    here.write_text("it grew while it was read")
    gone, line = (tmp_path / "gone.log").as_uri(), (tmp_path / "gone.jsonl").as_uri()
    elsewhere = (tmp_path.parent / "elsewhere.txt").as_uri()
    uris = [here.as_uri(), gone, f"{line}#1", f"{line}#2", elsewhere, "added:1"]
    assert scanned(tmp_path, [Document(uri, str(tmp_path)) for uri in uris], {}) == {
        here.as_uri(): FileChanged,
        gone: FileRemoved,
        line: FileRemoved,
    }


FOLLOWED_TOPIC = {"kafka:records/0": {"offset": 7}}


@pytest.mark.parametrize(
    ("written_by", "about", "others", "is_read"),
    [
        pytest.param("this folder", {}, FOLLOWED_TOPIC, False, id="as it was read"),
        pytest.param("/another/folder", {}, FOLLOWED_TOPIC, False, id="read for another folder"),
        pytest.param("records", {}, FOLLOWED_TOPIC, True, id="replaced by a message"),
        pytest.param("added", {}, {}, True, id="replaced by an import"),
        pytest.param(None, {}, FOLLOWED_TOPIC, True, id="removed by a message"),
        pytest.param(None, {EMPTY: True}, FOLLOWED_TOPIC, False, id="removed by a client"),
        pytest.param(None, {}, {}, False, id="removed by a client before that was marked"),
    ],
)
def test_file_is_parsed_again_if_another_kind_of_source_changed_its_documents(
    tmp_path: Path, written_by: str | None, about: dict[str, Any], others: dict[str, Any], is_read: bool
) -> None:
    file = tmp_path / "minutes.md"
    file.write_text("The board met.")
    os.utime(file, (1_000_000, 1_000_000))  # an old time, because a recently written file is checked again
    fingerprint, _ = read_fingerprint(os.fsencode(file), os.fsencode(tmp_path), follow=False)
    source = str(tmp_path) if written_by == "this folder" else written_by
    documents = [] if source is None else [Document(file.as_uri(), source)]
    positions = {file.as_uri(): fingerprint.to_json() | about, **others}
    assert scanned(tmp_path, documents, positions) == ({file.as_uri(): FileChanged} if is_read else {})


def test_scan_ignores_documents_of_a_separately_followed_inner_folder(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    claim = Claim(f"{inner.as_uri()}/", str(inner), OwnerKind.FOLDER)
    documents = [Document(f"{inner.as_uri()}/a.md", str(inner)), Document((tmp_path / "b.md").as_uri(), str(tmp_path))]
    assert scanned(tmp_path, documents, {}, [claim]) == {(tmp_path / "b.md").as_uri(): FileRemoved}
