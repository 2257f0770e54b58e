"""The queue of passages for the model: its cost at a commit, and passages that are removed and added again."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from daemon.pipeline.extraction import failed_passages
from daemon.pipeline.extraction.failed_passages import PassageFailure
from daemon.pipeline.extraction.journal import ExtractionJournal
from daemon.pipeline.extraction.queue import ExtractionQueue
from memory.batch_encoding import with_vectors
from memory.encoder.hashing import HashEncoder
from memory.openie.llm.extractor import NamedEntities
from store.store import Store
from store.types import Batch, Document, Extraction, ExtractionOutcome, PassageRef, PassageText, passage_id

NAME = "llm/m/1"
ENCODER = HashEncoder(64)
GONE = PassageFailure(4, "the model refuses it", None)
READ = {"extractor": NAME}
READ_BY_STAND_IN = {"extractor": "rules", "status": ExtractionOutcome.STAND_IN}
FAILED = {"extractor": NAME, "status": ExtractionOutcome.FAILED, "attempts": GONE.attempts, "error": GONE.reason}

Commit = Callable[..., list[str]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store", ENCODER.identity) as opened:
        yield opened


@pytest.fixture
def commit(store: Store) -> Commit:
    """`commit("a", "b", without=("c",))` commits documents of one passage each; returns the passages' ids."""

    def run(*texts: str, without: tuple[str, ...] = (), read: dict[str, Any] | None = None) -> list[str]:
        passages = tuple(PassageText(passage_id("", text), "", text) for text in texts)
        documents = tuple(
            Document(f"added:{text}", "added", passages=(PassageRef(passage.id),))
            for text, passage in zip(texts, passages, strict=True)
        )
        found = () if read is None else tuple(Extraction(passage.id, **read) for passage in passages)
        batch = Batch(documents, tuple(f"added:{text}" for text in without), passages, found)
        store.commit(with_vectors(store, ENCODER, batch))
        return [passage.id for passage in passages]

    return run


@pytest.fixture
def extraction_queue(store: Store, tmp_path: Path) -> ExtractionQueue:
    async def nobody(_passage: PassageText) -> Extraction:
        raise AssertionError("nothing runs")

    return ExtractionQueue(store, NAME, nobody, ExtractionJournal(tmp_path / "openie.jsonl", NAME), 1)


def test_queue_examines_only_the_passages_of_a_commit(
    store: Store, commit: Commit, extraction_queue: ExtractionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    documents_to_extract = store.documents_to_extract

    def record(id: str) -> Sequence[str]:
        looked.append(id)
        return documents_to_extract(id)

    monkeypatch.setattr(store, "documents_to_extract", record)
    extraction_queue.committed(passage_id("", f"never stored {n}") for n in range(1000))
    looked.clear()
    ids = commit("Ada Kerr built it.")
    extraction_queue.committed(ids)
    assert looked == ids
    assert extraction_queue.unfinished() == ids


def test_passage_is_queued_only_after_its_commit(commit: Commit, extraction_queue: ExtractionQueue) -> None:
    early = passage_id("", "Ada Kerr built it.")
    extraction_queue.committed(commit("Another."))
    assert early not in extraction_queue.unfinished()
    extraction_queue.committed(commit("Ada Kerr built it.", read=READ_BY_STAND_IN))
    assert early in extraction_queue.unfinished()


def test_removed_passage_that_is_added_again_is_queued_again(commit: Commit, extraction_queue: ExtractionQueue) -> None:
    ids = commit("Ada Kerr built it.", read=READ_BY_STAND_IN)
    extraction_queue.committed([])
    commit(without=("Ada Kerr built it.",))
    extraction_queue.committed([])
    assert extraction_queue.unfinished() == []
    commit("Ada Kerr built it.")
    extraction_queue.committed(ids)
    assert extraction_queue.unfinished() == ids


def test_extracted_passage_or_one_with_given_triples_is_not_queued(
    store: Store, commit: Commit, extraction_queue: ExtractionQueue
) -> None:
    extraction_queue.committed(commit("Ada Kerr built it.", read=READ))
    text = PassageText(passage_id("", "Others gave its triples."), "", "Others gave its triples.")
    brought = Document("added:brought", "added", passages=(PassageRef(text.id, triples=()),))
    store.commit(with_vectors(store, ENCODER, Batch((brought,), (), (text,))))
    extraction_queue.committed([text.id])
    assert extraction_queue.unfinished() == []


def test_passage_is_queued_only_for_documents_without_their_own_extraction(
    store: Store, commit: Commit, extraction_queue: ExtractionQueue
) -> None:
    [id] = commit("Ada Kerr built it.", read=READ_BY_STAND_IN)
    brought = Document("added:record", "added", passages=(PassageRef(id, triples=(), extractor=NAME),))
    store.commit(with_vectors(store, ENCODER, Batch((brought,))))
    extraction_queue.committed([id])
    assert extraction_queue.unfinished() == [id]
    commit(without=("Ada Kerr built it.",))
    assert store.documents_with_passage(id) == ["added:record"]
    again = ExtractionQueue(store, NAME, extraction_queue._read, extraction_queue._journal, 1)
    again.committed([id])
    assert again.unfinished() == []


def test_failures_list_only_present_documents_and_return_with_them(
    commit: Commit, extraction_queue: ExtractionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failed_passages, "SWEEP_FAILURES", 2)
    ids = commit("First.", "Second.", read=FAILED)
    extraction_queue.committed(ids)
    assert extraction_queue.failures() == dict.fromkeys(ids, GONE)
    extraction_queue._journal.found_entities(ids[0], NamedEntities(("Ada",)))
    commit(without=("First.",))
    assert list(extraction_queue.failures()) == ids[1:]
    monkeypatch.setattr(extraction_queue._failed, "_sweep_at", 2)
    extraction_queue.committed([])
    assert ids[0] not in extraction_queue._failed and ids[1] in extraction_queue._failed
    assert extraction_queue._journal.entities(ids[0]) is None
    commit("First.")
    extraction_queue.committed(ids[:1])
    assert extraction_queue.failures() == dict.fromkeys(ids, GONE)


def test_uncommitted_failure_is_kept_if_the_passage_is_requested_again(
    commit: Commit, extraction_queue: ExtractionQueue
) -> None:
    ids = commit("Ada Kerr built it.", read=READ_BY_STAND_IN)
    extraction_queue._fail(ids[0], GONE.attempts, GONE.reason)
    extraction_queue.committed(ids)
    assert extraction_queue.enqueue(ids) == 0
    assert extraction_queue.failures() == {ids[0]: GONE}
