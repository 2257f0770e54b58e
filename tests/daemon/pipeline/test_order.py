"""Changes of a document, its lines or its position that arrive while other work waits or is running."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

from consumers.types import FileChanged, Fingerprint, ParsedDocument, Passage
from daemon.pipeline.document_reader import DocumentReader
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.work_items import AddedDocument, DeliveredDocument, DocumentChange, Work
from daemon.services.documents.document_labels import has_any
from daemon.services.progress import ProgressBoard
from daemon.services.scopes import ScopeService
from daemon.services.transfer import TransferService
from daemon.sources.base import SourceLabels
from memory.encoder import make_encoder
from store.store import Store
from store.types import Document, Extraction, PassageRef, PassageText, State, passage_id
from tests.daemon.pipeline.any_owner import AnyOwner

FILE = "file:///drive/book.jsonl"
SOURCE = "/drive"
BLOCKED_URI = "added:blocked"


class NothingFound:
    """An extractor."""

    name = "none"

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        return []


class Lines:
    """A parser of one file of lines. It blocks work on the file and on BLOCKED_URI until it is released."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.released = asyncio.Event()
        self.begun: list[str] = []

    async def read(self, work: Work, _is_superseded: object = None) -> AsyncIterator[DocumentChange]:
        self.begun.append(work.key)
        if work.key in (FILE, BLOCKED_URI):
            await self.released.wait()
        if isinstance(work.task, DeliveredDocument) and work.task.document is not None:
            yield DocumentChange(work, [Document(work.key, work.source, metadata=dict(work.task.document.metadata))])
            return
        if not isinstance(work.task, FileChanged):
            yield DocumentChange(work)
            return
        texts = {name: PassageText(passage_id("T", text), "T", text) for name, text in self.texts.items()}
        documents = [
            Document(f"{FILE}#{name}", SOURCE, metadata={"labels": [text.text]}, passages=(PassageRef(text.id),))
            for name, text in texts.items()
        ]
        yield DocumentChange(
            work,
            documents,
            {text.id: text for text in texts.values()},
            positions={work.key: work.task.fingerprint.to_json()},
        )


class Drive:
    """A running pipeline that follows a folder with one file."""

    def __init__(self, store: Store, pipeline: Pipeline, reader: Lines) -> None:
        self.store = store
        self.pipeline = pipeline
        self.reader = reader

    def change(self, digest: str, **texts: str) -> None:
        """Sets the file's line texts, and emits the folder's event."""
        self.reader.texts = texts
        self.pipeline.file_events.take(FileChanged(FILE, b"/drive/book.jsonl", SOURCE, Fingerprint(1, 1, 1, digest)))

    def touch(self, mtime_ns: int, digest: str) -> Any:
        """Gives the file another mtime with the committed content. Returns its new position."""
        fingerprint = Fingerprint(1, mtime_ns, 1, digest)
        self.pipeline.file_events.touch(FILE, fingerprint)
        return fingerprint.to_json()

    async def until_begun(self, *keys: str) -> None:
        while self.reader.begun != list(keys):
            await asyncio.sleep(0.005)

    def texts_by_line(self) -> dict[str, str]:
        """Returns each line's text in the memory."""
        snapshot = self.store.snapshot()
        found = {}
        for document in self.store.documents():
            row = snapshot.passage_row(document.passages[0].passage)
            assert row is not None
            found[document.uri.removeprefix(f"{FILE}#")] = snapshot.passage(row).text
        return found


class BrokenFirstPart(Lines):
    """A parser that sends two parts of a file. The first part cannot be committed, because it lacks its passage."""

    async def read(self, work: Work, _is_superseded: object = None) -> AsyncIterator[DocumentChange]:
        if not isinstance(work.task, FileChanged) or not self.texts:
            async for change in super().read(work):
                yield change
            return
        text = PassageText(passage_id("T", "b"), "T", "b")
        yield DocumentChange(work, [Document(f"{FILE}#a", SOURCE, passages=(PassageRef("0" * 32),))], final=False)
        await self.released.wait()
        yield DocumentChange(
            work, [Document(f"{FILE}#b", SOURCE, passages=(PassageRef(text.id),))], {text.id: text}, final=False
        )
        yield DocumentChange(work)


def driven(
    folder: Path, scenario: Callable[[Drive], Awaitable[None]], make_reader: Callable[[], Lines] = Lines
) -> None:
    async def run() -> None:
        encoder = make_encoder("hash", "", 64, "cpu")
        with Store(folder, encoder.identity) as store:
            reader = make_reader()
            pipeline = Pipeline(
                store,
                encoder,
                cast("Any", NothingFound()),
                cast("DocumentReader", reader),
                lambda *_, **__: None,
                2,
                owners=AnyOwner(),
            )
            pipeline.start()
            async with asyncio.timeout(60):
                await scenario(Drive(store, pipeline, reader))
            await pipeline.stop(10)

    asyncio.run(run())


def sees_public(document: Document) -> bool:
    return has_any(["public"], {SOURCE: SourceLabels(), "kafka": SourceLabels()})(document)


def labelled(uri: str, label: str) -> DeliveredDocument:
    return DeliveredDocument(uri, ParsedDocument(uri, "T", (Passage("T", "text"),), {"labels": [label]}))


def test_removal_spares_a_line_that_a_newer_file_version_hides_from_the_client(tmp_path: Path) -> None:
    async def scenario(drive: Drive) -> None:
        drive.reader.released.set()
        drive.change("first", a="public", b="public")
        await drive.pipeline.drained()
        drive.reader.released.clear()
        drive.change("second", a="board", b="public")
        removal = asyncio.create_task(drive.pipeline.remove([f"{FILE}#a", f"{FILE}#b"], sees_public))
        await asyncio.sleep(0.05)
        drive.reader.released.set()
        await removal
        assert drive.texts_by_line() == {"a": "board"}

    driven(tmp_path, scenario)


def test_removal_of_a_replaced_message_spares_the_waiting_one(tmp_path: Path) -> None:
    async def scenario(drive: Drive) -> None:
        drive.reader.released.set()
        await drive.pipeline.deliver(labelled(BLOCKED_URI, "public"), "kafka")
        await drive.pipeline.drained()
        drive.reader.released.clear()
        await drive.pipeline.deliver(labelled(BLOCKED_URI, "public"), "kafka")
        await drive.until_begun(BLOCKED_URI, BLOCKED_URI)
        await drive.pipeline.deliver(labelled(BLOCKED_URI, "board"), "kafka")
        removal = asyncio.create_task(drive.pipeline.remove([BLOCKED_URI], sees_public))
        await asyncio.sleep(0.05)
        drive.reader.released.set()
        await removal
        document = drive.store.document(BLOCKED_URI)
        assert document is not None
        assert document.metadata == {"labels": ["board"]}

    driven(tmp_path, scenario)


def test_line_removal_is_applied_after_the_waiting_change_of_its_file(tmp_path: Path) -> None:
    async def scenario(drive: Drive) -> None:
        drive.change("first", a="before", b="before", c="before")
        await drive.until_begun(FILE)
        drive.change("second", a="after", b="after", c="after", d="after")
        removal = asyncio.create_task(drive.pipeline.remove([f"{FILE}#a", f"{FILE}#b"]))
        await asyncio.sleep(0.05)
        assert not removal.done()
        drive.reader.released.set()
        await removal
        assert drive.texts_by_line() == {"c": "after", "d": "after"}

    driven(tmp_path, scenario)


def test_line_removal_is_applied_after_the_running_parse_of_its_file(tmp_path: Path) -> None:
    async def scenario(drive: Drive) -> None:
        drive.change("first", a="a line", b="another")
        await drive.until_begun(FILE)
        removal = asyncio.create_task(drive.pipeline.remove([f"{FILE}#a"]))
        while len(drive.pipeline.intake) < 2:
            await asyncio.sleep(0.005)
        drive.reader.released.set()
        await removal
        assert drive.texts_by_line() == {"b": "another"}

    driven(tmp_path, scenario)


def test_file_taken_over_by_another_source_follows_its_changes_and_removal(tmp_path: Path) -> None:
    async def scenario(drive: Drive) -> None:
        drive.reader.released.set()
        drive.change("first", a="before", b="before")
        await drive.pipeline.drained()
        drive.pipeline.file_events.take_over("/drive/inner", [FILE])
        await drive.pipeline.drained()
        assert {document.source for document in drive.store.documents()} == {"/drive/inner"}
        assert drive.texts_by_line() == {"a": "before", "b": "before"}
        assert drive.store.positions[FILE] == Fingerprint(1, 1, 1, "first").to_json()
        drive.pipeline.file_events.take_over(SOURCE, [FILE])
        drive.change("second", a="after")
        await drive.pipeline.drained()
        assert drive.texts_by_line() == {"a": "after"}
        drive.pipeline.file_events.take_over("/drive/inner", [FILE])
        await drive.pipeline.remove([FILE])
        assert drive.store.documents() == []

    driven(tmp_path, scenario)


async def commit_another(drive: Drive) -> None:
    await drive.pipeline.remove(["added:another"])


def test_touched_files_position_is_not_committed_before_its_running_document(tmp_path: Path) -> None:
    async def scenario(drive: Drive) -> None:
        drive.change("first", a="before")
        await drive.until_begun(FILE)
        drive.touch(2, "second")
        await commit_another(drive)
        assert FILE not in drive.store.positions
        drive.reader.released.set()
        await drive.pipeline.drained()
        assert drive.store.positions[FILE] == Fingerprint(1, 1, 1, "first").to_json()
        await commit_another(drive)
        assert drive.store.positions[FILE] == Fingerprint(1, 1, 1, "first").to_json(), "what was read since counts"
        position = drive.touch(3, "first")
        await commit_another(drive)
        assert drive.store.positions[FILE] == position, "nothing is under way any more"

    driven(tmp_path, scenario)


def test_an_import_waits_for_its_own_documents_alone(tmp_path: Path) -> None:
    docs = [{"passage": f"Isle {n}\nCharted by {n}.", "extracted_triples": [["a", "b", "c"]]} for n in range(3)]

    async def body() -> AsyncIterator[bytes]:
        yield json.dumps({"docs": docs}).encode()

    async def scenario(drive: Drive) -> None:
        drive.change("first", a="It takes long to read.")
        await drive.until_begun(FILE)
        board = ProgressBoard(drive.pipeline.intake, cast("Any", None))
        taking = TransferService(
            drive.store, drive.pipeline, ScopeService(drive.store, tuple), board, *[cast("Any", None)] * 2
        )
        imported = await asyncio.wait_for(taking.import_openie(body()), 30)
        assert imported.passages == 3
        assert [work.key for work in drive.pipeline.intake.pending()] == [FILE]

    driven(tmp_path, scenario)


def test_wait_for_an_added_document_includes_its_later_version(tmp_path: Path) -> None:
    async def scenario(drive: Drive) -> None:
        earlier = await drive.pipeline.inbox.add([AddedDocument(BLOCKED_URI, "{}")])
        await drive.until_begun(BLOCKED_URI)
        await drive.pipeline.inbox.add([AddedDocument(BLOCKED_URI, "{}")])
        drive.reader.released.set()
        await drive.pipeline.inbox.indexed([earlier])
        assert len(drive.pipeline.intake) == 0
        assert list((tmp_path / "inbox").iterdir()) == []

    driven(tmp_path, scenario)


def test_work_ends_at_its_first_part_that_cannot_be_committed(tmp_path: Path) -> None:
    async def scenario(drive: Drive) -> None:
        drive.change("1", a="a")
        while drive.store.document(FILE) is None:
            await asyncio.sleep(0.005)
        drive.reader.released.set()
        await drive.pipeline.drained()
        drive.reader.texts = {}
        drive.pipeline.file_events.take(FileChanged(FILE + "x", b"/drive/other", SOURCE, Fingerprint(1, 1, 2, "2")))
        await drive.pipeline.drained()
        assert {each.uri: each.state for each in drive.store.documents()} == {FILE: State.FAILED}

    driven(tmp_path, scenario, BrokenFirstPart)
