"""Added documents are counted, queued without blocking the event loop, and kept even if the client has disconnected."""

import asyncio
import errno
import json
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from daemon.contract.status import Progress
from daemon.errors import NotReady, TooLarge
from daemon.pipeline.backpressure import Burst, Capacity, QueueLimits
from daemon.pipeline.document_reader import DocumentReader
from daemon.pipeline.incoming.inbox import QUEUE_SLICE_DOCUMENTS
from daemon.pipeline.ownership import Owners
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.work_items import AddedDocument, DocumentChange, Work
from daemon.services import openie_import
from daemon.services.documents import document_service as serving
from daemon.services.documents.document_service import DocumentService
from daemon.services.progress import ProgressBoard
from daemon.services.scopes import ScopeService
from daemon.services.transfer import TransferService
from memory.encoder import make_encoder
from store.store import Store
from tests.daemon.pipeline.test_records import Reader, Refusing

Publish = Callable[..., None]


def filled(
    folder: Path,
    scenario: Callable[[Pipeline], Awaitable[None]],
    publish: Publish = lambda *_, **__: None,
    limits: QueueLimits | None = None,
) -> None:
    """Runs the scenario on a pipeline that accepts documents and does not process them."""

    async def run() -> None:
        encoder = make_encoder("hash", "", 64, "cpu")
        with Store(folder, encoder.identity) as store:
            most = limits or QueueLimits()
            pipeline = Pipeline(store, encoder, Refusing(), Reader(), publish, 1, most, owners=Owners())
            async with asyncio.timeout(60):
                await scenario(pipeline)
            await pipeline.stop(1)

    asyncio.run(run())


def added(count: int, text: str = '{"text": "a"}') -> list[AddedDocument]:
    return [AddedDocument(f"added:{n}", text) for n in range(count)]


def test_added_documents_are_queued_in_slices_that_do_not_block_the_event_loop(tmp_path: Path) -> None:
    turns = 0
    queued_at: list[int] = []

    async def scenario(pipeline: Pipeline) -> None:
        async def turn() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        turning = asyncio.create_task(turn())
        await pipeline.inbox.add(added(4 * QUEUE_SLICE_DOCUMENTS))
        turning.cancel()

    filled(tmp_path, scenario, publish=lambda *_, **__: queued_at.append(turns))
    assert len(queued_at) == 4 * QUEUE_SLICE_DOCUMENTS
    assert max(queued_at.count(at) for at in set(queued_at)) <= QUEUE_SLICE_DOCUMENTS


def test_concurrent_add_requests_are_queued_in_order(tmp_path: Path) -> None:
    """They are queued in the order of their inbox files. A start after a crash uses this order too, so the same version of a
    document wins."""
    last: list[str] = []

    async def scenario(pipeline: Pipeline) -> None:
        many = added(20 * QUEUE_SLICE_DOCUMENTS, '{"text": "earlier"}')
        await asyncio.gather(
            pipeline.inbox.add(many),
            pipeline.inbox.add([AddedDocument(many[-1].uri, '{"text": "later"}')]),
        )
        last.extend(
            work.task.text
            for work in pipeline.intake.pending()
            if work.key == many[-1].uri and isinstance(work.task, AddedDocument)
        )

    filled(tmp_path, scenario)
    assert last == ['{"text": "later"}']


def test_cancelled_add_is_queued_if_it_may_be_on_disk(tmp_path: Path) -> None:
    async def scenario(pipeline: Pipeline) -> None:
        adding = asyncio.create_task(pipeline.inbox.add(added(2 * QUEUE_SLICE_DOCUMENTS)))
        await asyncio.sleep(0)
        adding.cancel()
        while len(pipeline.intake) < 2 * QUEUE_SLICE_DOCUMENTS:
            await asyncio.sleep(0.01)
        assert pipeline.inbox.capacity.items == 2 * QUEUE_SLICE_DOCUMENTS
        assert len(list((tmp_path / "inbox").iterdir())) == 1

    filled(tmp_path, scenario)


def test_inbox_bytes_are_counted_as_encoded_utf8(tmp_path: Path) -> None:
    async def scenario(pipeline: Pipeline) -> None:
        await pipeline.inbox.add([AddedDocument("added:1", '{"text": "äöü€"}')])
        assert pipeline.inbox.capacity.bytes == len('{"text": "äöü€"}'.encode())

    filled(tmp_path, scenario)


@pytest.mark.parametrize(
    ("limits", "key"), [(QueueLimits(inbox_documents=3), "documents"), (QueueLimits(inbox_bytes=40), "bytes")]
)
def test_request_larger_than_the_inbox_is_refused_unless_it_waits(
    tmp_path: Path, limits: QueueLimits, key: str
) -> None:
    async def scenario(pipeline: Pipeline) -> None:
        with pytest.raises(TooLarge, match=rf"inbox_{key}\).*none was accepted: send them in several requests"):
            await pipeline.inbox.add(added(4))
        assert (len(pipeline.intake), pipeline.inbox.capacity.items) == (0, 0)
        await pipeline.inbox.add(added(4), wait=True)
        assert len(pipeline.intake) == 4

    filled(tmp_path, scenario, limits=limits)


@pytest.mark.parametrize("started", [False, True])
def test_adds_and_removals_during_the_stop_are_refused_at_once(tmp_path: Path, started: bool) -> None:
    async def scenario(pipeline: Pipeline) -> None:
        pipeline.reading._reader = cast("DocumentReader", BlockedReader())
        if started:
            pipeline.start()
            await pipeline.inbox.add([AddedDocument("added:line", "{}")])
        adding = asyncio.create_task(pipeline.inbox.add(added(2)))
        await asyncio.sleep(0)
        await pipeline.stop(1)
        with pytest.raises(NotReady):
            await adding
        for call in (
            pipeline.inbox.add(added(2)),
            pipeline.remove(["added:0"]),
            pipeline.remove(["added:line#1"]),
        ):
            with pytest.raises(NotReady):
                await asyncio.wait_for(call, 30)

    filled(tmp_path, scenario)


def test_import_waiting_for_inbox_space_is_refused_when_the_pipeline_stops(tmp_path: Path) -> None:
    async def scenario(pipeline: Pipeline) -> None:
        await pipeline.inbox.add(added(2))
        adding = asyncio.create_task(pipeline.inbox.add(added(2), wait=True))
        await asyncio.sleep(0)
        await pipeline.stop(1)
        with pytest.raises(NotReady):
            await asyncio.wait_for(adding, 30)

    filled(tmp_path, scenario, limits=QueueLimits(inbox_documents=2))


@pytest.mark.parametrize("broken", ["fsync", "open"], ids=["the file", "its folder"])
def test_add_refused_by_a_full_disk_leaves_no_file_and_names_the_error(
    tmp_path: Path, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def scenario(pipeline: Pipeline) -> None:
        monkeypatch.setattr(f"store.durable_files.os.{broken}", full)
        for _ in range(2):
            with pytest.raises(NotReady, match=r"The disk.*No space left on device; none was accepted"):
                await pipeline.inbox.add(added(2))
        assert list((tmp_path / "inbox").iterdir()) == []
        assert (pipeline.inbox.capacity.items, len(pipeline.intake)) == (0, 0)
        monkeypatch.undo()
        await pipeline.inbox.add(added(2))

    filled(tmp_path, scenario)


class BlockedReader:
    """A parser that blocks until released and returns nothing."""

    def __init__(self) -> None:
        self.begun, self.released = asyncio.Event(), asyncio.Event()

    async def read(self, work: Work, _is_superseded: object = None) -> AsyncIterator[DocumentChange]:
        self.begun.set()
        await self.released.wait()
        yield DocumentChange(work)


def test_wait_for_removal_ends_if_document_is_added_again(tmp_path: Path) -> None:
    async def scenario(pipeline: Pipeline) -> None:
        reader = BlockedReader()
        pipeline.reading._reader = cast("DocumentReader", reader)
        pipeline.start()
        removal = asyncio.create_task(pipeline.remove(["added:0"]))
        await reader.begun.wait()
        await pipeline.inbox.add(added(1))
        reader.released.set()
        await removal

    filled(tmp_path, scenario)


class Taking:
    """Replaces the pipeline and records its input."""

    def __init__(self, documents: int, bytes: int) -> None:
        self.inbox = self
        self.capacity = Capacity(documents, bytes)
        self.taken: list[list[AddedDocument]] = []

    async def add(self, documents: Sequence[AddedDocument], wait: bool = False) -> int:
        self.taken.append(list(documents))
        return 1

    async def indexed(self, tickets: Sequence[int]) -> None:
        self.on_indexed()

    def on_indexed(self) -> None:
        pass

    def waiting(self, tickets: Sequence[int]) -> int:
        return 200

    def refuse_too_many(self, documents: int) -> None:
        pass


def test_added_documents_are_checked_outside_the_event_loop_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[threading.Thread] = set()

    def named(document: dict[str, Any]) -> tuple[None, str]:
        threads.add(threading.current_thread())
        return None, f"added:{document['id']}"

    monkeypatch.setattr(serving, "check_document", named)
    monkeypatch.setattr(DocumentService, "_in_sight", lambda *_: [])
    taking = Taking(10, 1000)
    absent = cast("Any", None)
    service = DocumentService(absent, cast("Any", taking), absent, absent, ScopeService(absent, tuple), absent)
    asyncio.run(service.add([{"id": "1", "text": "a"}, {"id": "2", "text": "b"}]))
    assert [document.uri for document in taking.taken[0]] == ["added:1", "added:2"]
    assert threading.main_thread() not in threads


@pytest.mark.parametrize(("documents", "bytes", "most"), [(50, 1 << 20, 50), (10_000, 1 << 20, 500), (50, 2_000, 30)])
def test_import_is_split_into_parts_that_fit_the_inbox(
    monkeypatch: pytest.MonkeyPatch, documents: int, bytes: int, most: int
) -> None:
    taking = Taking(documents, bytes)
    passages = [
        {"passage": f"Title {n}\nText {n}.", "extracted_triples": [["a", "b", "c"], ["d"]]} for n in range(1_200)
    ]
    same = {"passage": "Title 7\nText 7.", "extracted_triples": [["x", "y", "z"]]}

    async def chunks() -> Any:
        yield json.dumps({"docs": [None, *passages, same]}).encode()

    class Empty(SimpleNamespace):
        def __len__(self) -> int:
            return 0

    board = ProgressBoard(cast("Any", Empty(burst=Burst())), cast("Any", Empty(burst=Burst())))
    told: list[Progress] = []
    monkeypatch.setattr(taking, "on_indexed", lambda: told.extend(board.current()))
    answer = asyncio.run(
        TransferService(
            cast("Any", None), cast("Any", taking), cast("Any", None), board, *[cast("Any", None)] * 2
        ).import_openie(chunks())
    )
    assert (answer.passages, answer.triples, answer.skipped) == (1_200, 1_201, 1_201)
    handed = sum(map(len, taking.taken))
    assert [(each.task, each.done, each.total) for each in told] == [("import", handed - 200, handed)]
    assert len({document.uri for part in taking.taken for document in part}) == 1_200
    assert all(len({document.uri for document in part}) == len(part) <= most for part in taking.taken)
    assert all(
        sum(len(document.text) for document in part) <= min(bytes, openie_import.IMPORT_BATCH_BYTES)
        for part in taking.taken
    )
    assert json.loads(taking.taken[-1][-1].text)["triples"] == [["x", "y", "z"]]


def test_a_damaged_or_foreign_file_in_the_inbox_does_not_stop_the_start(tmp_path: Path) -> None:
    async def add(pipeline: Pipeline) -> None:
        await pipeline.inbox.add(added(1))
        await pipeline.inbox.add([AddedDocument("added:good", '{"text": "a"}')])

    waiting: list[str] = []

    async def recover(pipeline: Pipeline) -> None:
        pipeline.inbox.recover()
        waiting.extend(work.key for work in pipeline.intake.pending())

    filled(tmp_path, add)
    damaged, _ = sorted((tmp_path / "inbox").glob("*.jsonl"))
    damaged.write_bytes(b"\x00" * 20)
    (tmp_path / "inbox" / "notes.jsonl").write_text("{}")
    with capture_logs() as logged:
        filled(tmp_path, recover)
    assert waiting == ["added:good"]
    assert [entry["file"] for entry in logged if entry["event"] == "inbox_file_damaged"] == [
        str(damaged.with_suffix(".damaged"))
    ]
    filled(tmp_path, recover)
    assert waiting == ["added:good", "added:good"]
