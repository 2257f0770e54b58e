"""Backfill: an in-process extractor reads all that waits, in bulk, and goes on where it was interrupted.

vLLM needs a card; what runs here in its place is the extractor by rules, which reads passages in bulk too.
"""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from daemon.costs.estimate import CostEstimator
from daemon.costs.ledger import CostLedger
from daemon.pipeline.extraction.journal import ExtractionJournal
from daemon.pipeline.extraction.queue import ExtractionQueue
from daemon.services import extraction
from daemon.services.extraction import ExtractionService
from memory.batch_encoding import with_vectors
from memory.encoder.hashing import HashEncoder
from memory.openie.rules.extractor import RulesExtractor
from store.store import Store
from store.types import Batch, Document, PassageRef, PassageText, passage_id

TEXTS = [f"Ada Kerr built light number {n} in 18{n:02d}." for n in range(40)]


class Counting(RulesExtractor):
    """Counts what it is given, and fails when it has read `most`."""

    def __init__(self, read: list[str], most: int, useless: str = "nothing") -> None:
        self._read, self._most, self._useless = read, most, useless

    def extract(self, passages, unread=None):
        if len(self._read) >= self._most:
            raise RuntimeError("the card is gone")
        self._read += [passage.id for passage in passages]
        for passage in passages:
            if self._useless in passage.text:
                unread(passage.id, "its answers were of no use")
        return super().extract([passage for passage in passages if self._useless not in passage.text])


def commit_documents(store, encoder):
    passages = tuple(PassageText(passage_id("", text), "", text) for text in TEXTS)
    documents = tuple(Document(f"added:{n}", "added", passages=(PassageRef(p.id),)) for n, p in enumerate(passages))
    store.commit(with_vectors(store, encoder, Batch(documents=documents, passages=passages)))


async def fill(folder: Path, read: list[str], most: int, useless: str = "nothing", purged: int = 0):
    """One life of a daemon with backfill; returns what it answered last and how many triples there are.

    The first `purged` documents are removed and purged once their passages wait.
    """
    encoder = HashEncoder(64)
    with Store(folder, encoder.identity) as store:
        if not store.documents():
            commit_documents(store, encoder)

        async def commit_extractions(found):
            await asyncio.to_thread(
                lambda: store.commit(with_vectors(store, encoder, Batch(extractions=tuple(found.values()))))
            )

        async def never(_passage):
            raise AssertionError("nothing is read but in bulk")

        journal = ExtractionJournal(folder / "openie.jsonl", RulesExtractor.name)
        extraction_queue = ExtractionQueue(store, RulesExtractor.name, never, journal, 2, bulk_only=True)
        service = ExtractionService(
            store,
            extraction_queue,
            lambda: Counting(read, most, useless),
            note=None,
            estimator=CostEstimator(lambda: None, 0, 2),
            left_s=lambda _passages: 0.0,
            ledger=CostLedger(None, lambda: None),
        )
        extraction_queue.start(commit_extractions)
        if purged:
            store.commit(Batch(removed=tuple(f"added:{n}" for n in range(purged))))
            store.purge(timedelta(0))
        await extraction_queue.drained()  # what is held back holds nobody up
        answer = await service.backfill()
        while (answer := await service.extraction()).running:
            await asyncio.sleep(0.02)
        await extraction_queue.all_committed()
        await extraction_queue.stop()
        return answer, store.snapshot().living_statements


@pytest.mark.slow
def test_interrupted_backfill_resumes_and_extracts_every_passage_once(tmp_path, monkeypatch):
    monkeypatch.setattr(extraction, "BULK_BATCH_PASSAGES", 8)
    read: list[str] = []
    answer, triples = asyncio.run(fill(tmp_path / "store", read, most=24))
    assert "the card is gone" in answer.error
    assert (answer.waiting, len(read)) == (16, 24)
    assert triples > 0
    answer, _ = asyncio.run(fill(tmp_path / "store", read, most=1000))
    assert (answer.waiting, answer.error) == (0, None)
    assert len(read) == len(set(read)) == len(TEXTS)
    assert {each.extractor: each.passages for each in answer.spent} == {RulesExtractor.name: len(TEXTS)}


@pytest.mark.slow
def test_backfill_completes_and_reports_a_passage_that_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(extraction, "BULK_BATCH_PASSAGES", 8)
    read: list[str] = []
    answer, _ = asyncio.run(fill(tmp_path / "store", read, most=1000, useless="number 7 "))
    assert (answer.waiting, answer.failed, answer.error) == (0, 1, None)
    assert len(read) == len(set(read)) == len(TEXTS)


@pytest.mark.slow
@pytest.mark.parametrize("purged", [8, 20])
def test_a_backfill_passes_over_passages_that_were_purged_while_they_waited(tmp_path, monkeypatch, purged):
    monkeypatch.setattr(extraction, "BULK_BATCH_PASSAGES", 8)
    read: list[str] = []
    answer, _ = asyncio.run(fill(tmp_path / "store", read, most=1000, purged=purged))
    assert (answer.waiting, answer.error, len(read)) == (0, None, len(TEXTS) - purged)
