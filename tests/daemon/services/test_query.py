"""A query concurrent with a commit: a document contains each returned passage, or another memory is queried."""

import asyncio
import threading
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from daemon.contract.query import Mode, QueryRequest
from daemon.services import query_shares
from daemon.services.query import QueryService
from memory.encoder.hashing import HashEncoder
from memory.retrieval.settings import RetrievalSettings
from store.snapshot import DocumentSnapshot, Snapshot
from store.store import Store
from store.types import Batch, Document, PassageRef, PassageText, Pause, no_pause, passage_id

TEXTS = {"a": "The lamp of the attic was made by Orla Quill.", "b": "The harbour freezes in winter."}


def batch(encoder: HashEncoder) -> Batch:
    ids = {name: passage_id(name, text) for name, text in TEXTS.items()}
    passages = tuple(PassageText(ids[name], name, text) for name, text in TEXTS.items())
    vectors = encoder.encode([passage.full for passage in passages])
    return Batch(
        documents=tuple(Document(f"added:{name}", "test", passages=(PassageRef(ids[name], {}, ()),)) for name in TEXTS),
        passages=passages,
        passage_vectors={passage.id: vector for passage, vector in zip(passages, vectors, strict=True)},
    )


class Racing(Store):
    """Removes the best passage's document just after its first query has taken a snapshot."""

    raced = False

    def snapshot(self) -> Snapshot:
        taken = super().snapshot()
        if not self.raced:
            self.raced = True
            self.commit(Batch(removed=("added:a",)))
        return taken


def test_query_concurrent_with_a_removal_returns_only_passages_with_a_document(tmp_path: Path) -> None:
    encoder = HashEncoder(64)
    with Racing(tmp_path, encoder.identity) as store:
        store.commit(batch(encoder))
        service = QueryService(store, encoder, RetrievalSettings, lambda: "dense")
        answer = asyncio.run(service.query(QueryRequest(query="Who made the lamp?", mode=Mode("dense"))))
        service.close()
        assert store.raced
        assert [passage.document for passage in answer.passages] == ["added:b"]
        assert answer.commit == store.snapshot().commit


class Slow(Store):
    """Loads no earlier commit before it is released."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.loading = threading.Semaphore(0)
        self.load = threading.Event()

    def document_snapshot_at(self, moment: float | int, pause: Pause = no_pause) -> DocumentSnapshot:
        self.loading.release()
        assert self.load.wait(60)
        return super().document_snapshot_at(moment, pause)


def test_loading_earlier_commits_does_not_block_present_queries(tmp_path: Path) -> None:
    encoder = HashEncoder(64)

    async def scenario(store: Slow, service: QueryService) -> None:
        earlier = [
            asyncio.create_task(service.query(QueryRequest(query="lamp", mode=Mode("dense"), as_of=2)))
            for _ in range(8)
        ]
        await asyncio.to_thread(store.loading.acquire)
        assert (await service.query(QueryRequest(query="lamp", mode=Mode("dense")))).commit == 3
        assert not any(each.done() for each in earlier)
        store.load.set()
        assert {answer.commit for answer in await asyncio.gather(*earlier)} == {2}

    with Slow(tmp_path, encoder.identity) as store:
        store.commit(batch(encoder))
        store.commit(Batch(removed=("added:a",)))
        service = QueryService(store, encoder, RetrievalSettings, lambda: "dense")
        asyncio.run(scenario(store, service))
        service.close()


class Blocking(HashEncoder):
    """Encodes no query about the past before it is released."""

    def __init__(self) -> None:
        super().__init__(64)
        self.encoding, self.encode_past = threading.Event(), threading.Event()

    def encode_query(self, text: str) -> Any:
        if text == "past":
            self.encoding.set()
            assert self.encode_past.wait(60)
        return super().encode_query(text)


def test_past_queries_take_no_share_and_pause_during_present_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = Blocking()
    slept: list[float] = []
    monkeypatch.setattr(query_shares, "PAUSE_AFTER_S", -1.0)
    clock = SimpleNamespace(thread_time=time.thread_time, monotonic=time.monotonic, sleep=slept.append)
    monkeypatch.setattr(query_shares, "time", clock)

    async def scenario(service: QueryService) -> None:
        earlier = [
            asyncio.create_task(service.query(QueryRequest(query="past", mode=Mode("dense"), as_of=2)))
            for _ in range(8)
        ]
        await asyncio.to_thread(encoder.encoding.wait)
        assert (await service.query(QueryRequest(query="lamp", mode=Mode("dense")))).commit == 3
        slept.clear()
        holding = threading.Event()
        present = asyncio.create_task(service.in_thread(partial(holding.wait, 60)))
        encoder.encode_past.set()
        answers = await asyncio.gather(*earlier)
        assert len(slept) >= sum(len(answer.stages_ms) for answer in answers)
        holding.set()
        await present

    with Store(tmp_path, encoder.identity) as store:
        store.commit(batch(encoder))
        store.commit(Batch(removed=("added:a",)))
        service = QueryService(store, encoder, RetrievalSettings, lambda: "dense")
        asyncio.run(scenario(service))
        service.close()


def test_a_cancelled_query_is_held_until_its_thread_has_ended(tmp_path: Path) -> None:
    encoder = HashEncoder(64)
    working, over = threading.Event(), threading.Event()

    def work() -> None:
        working.set()
        assert over.wait(60)

    async def scenario(service: QueryService) -> None:
        asked = asyncio.create_task(service.in_thread(work))
        await asyncio.to_thread(working.wait)
        asked.cancel()
        await asyncio.wait([asked], timeout=0)
        assert not asked.done()
        over.set()
        await asyncio.wait([asked])
        assert asked.cancelled()

    with Store(tmp_path, encoder.identity) as store:
        service = QueryService(store, encoder, RetrievalSettings, lambda: "dense")
        asyncio.run(scenario(service))
        service.close()
