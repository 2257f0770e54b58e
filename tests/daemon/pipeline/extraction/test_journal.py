"""The extraction journal: results that cannot be written are used nevertheless, and extraction continues."""

import asyncio
import errno
import os
import resource
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from daemon.append_file import RETRY_S
from daemon.pipeline.extraction.journal import ExtractionJournal
from daemon.pipeline.extraction.queue import ExtractionQueue
from memory.batch_encoding import with_vectors
from memory.encoder.hashing import HashEncoder
from memory.openie.llm.extractor import NamedEntities
from store.durable_files import PART
from store.store import Store
from store.types import Batch, Document, Extraction, PassageRef, PassageText, passage_id

NAME = "llm/m/1"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@contextmanager
def no_file_can_be_opened() -> Iterator[None]:
    """Makes opening files fail with EMFILE."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def fill_the_disk(journal: ExtractionJournal) -> None:
    """Makes all further writes fail with ENOSPC."""
    out = journal._file._out
    assert out is not None
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, out.fileno())
    os.close(full)


def written(file: Path) -> ExtractionJournal:
    """Returns the journal that a later start would find. Uses a copy, because opening a journal takes it over."""
    return ExtractionJournal(Path(shutil.copy(file, file.with_suffix(".copy"))), NAME)


def extraction(passage: str) -> Extraction:
    return Extraction(passage, NAME, ("ada",), (("ada", "built", "it"),), 10, 5)


def test_answer_is_journalled_later_if_the_disk_is_full(tmp_path, clock):
    file = tmp_path / "openie.jsonl"
    journal = ExtractionJournal(file, NAME, clock)
    journal.found(extraction("a"))
    fill_the_disk(journal)
    with capture_logs() as logged:
        journal.found(extraction("b"))
        journal.found_entities("c", NamedEntities(("Ada",)))
        journal.found(extraction("d"))
    assert [(line["event"], line["error"].errno) for line in logged] == [("lines_not_written", errno.ENOSPC)]
    assert list(journal.extractions) == ["a", "b", "d"]
    assert list(written(file).extractions) == ["a"]
    clock.now += RETRY_S
    journal.found(extraction("e"))
    again = written(file)
    assert list(again.extractions) == ["a", "b", "d", "e"]
    assert again.entities("c") == NamedEntities(("Ada",))
    journal.found(extraction("f"))
    assert "f" in written(file).extractions
    assert len(logged) == 1


def test_unwritten_results_are_written_when_the_journal_is_closed(tmp_path, clock):
    file = tmp_path / "openie.jsonl"
    journal = ExtractionJournal(file, NAME, clock)
    journal.found(extraction("a"))
    fill_the_disk(journal)
    journal.found(extraction("b"))
    journal.close()
    assert list(written(file).extractions) == ["a", "b"]


def test_journal_that_cannot_be_rewritten_is_appended_to(tmp_path, clock, monkeypatch):
    file = tmp_path / "openie.jsonl"
    journal = ExtractionJournal(file, NAME, clock)
    journal.found(extraction("a"))
    monkeypatch.setattr(journal._file, "_rewrite_at", 1)
    with capture_logs() as logged, no_file_can_be_opened():
        journal.committed(["a"])
        journal.found(extraction("b"))
    assert [(line["event"], line["error"].errno) for line in logged] == [("lines_not_written", errno.EMFILE)]
    assert list(written(file).extractions) == ["a", "b"]


def test_journal_is_readable_only_by_its_owner_for_any_umask(tmp_path):
    file = tmp_path / "openie.jsonl"
    umask = os.umask(0)
    try:
        ExtractionJournal(file, NAME).found(extraction("a"))
    finally:
        os.umask(umask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_commit_truncates_the_journal_and_leaves_an_empty_one_untouched(tmp_path, clock):
    file = tmp_path / "openie.jsonl"
    journal = ExtractionJournal(file, NAME, clock)
    journal.committed(["a"])
    assert not file.exists()
    journal.found(extraction("a"))
    made = file.stat().st_ino
    with no_file_can_be_opened():
        journal.committed(["a"])
    assert (file.stat().st_size, file.stat().st_ino) == (0, made)
    written_at = file.stat().st_mtime_ns
    journal.committed(["a"])
    assert file.stat().st_mtime_ns == written_at
    journal.found(extraction("b"))
    assert list(written(file).extractions) == ["b"]


def test_start_with_read_only_journal_uses_its_answers_unchanged(tmp_path, clock):
    file = tmp_path / "openie.jsonl"
    journal = ExtractionJournal(file, NAME)
    journal.found(extraction("a"))
    journal.close()
    with file.open("a") as out:
        out.write('{"half a li')
    blocked = file.with_name(file.name + PART)
    blocked.mkdir()
    journal = ExtractionJournal(file, NAME, clock)
    journal.found(extraction("b"))
    blocked.rmdir()
    assert list(journal.extractions) == ["a", "b"]
    assert file.read_text().endswith('{"half a li')
    clock.now += RETRY_S
    journal.found(extraction("c"))
    assert list(written(file).extractions) == ["a", "b", "c"]


def a_store(folder: Path, texts: list[str]) -> Store:
    """Returns a store with a document for each text, whose passages have no extraction."""
    encoder = HashEncoder(64)
    store = Store(folder, encoder.identity)
    passages = tuple(PassageText(passage_id("", text), "", text) for text in texts)
    documents = tuple(Document(f"added:{n}", "added", passages=(PassageRef(p.id),)) for n, p in enumerate(passages))
    store.commit(with_vectors(store, encoder, Batch(documents=documents, passages=passages)))
    return store


def test_extractions_are_committed_if_the_journal_cannot_be_written(tmp_path):
    texts = [f"Ada Kerr built light number {n}." for n in range(6)]

    async def read(passage: PassageText) -> Extraction:
        return extraction(passage.id)

    async def run(store: Store) -> set[str | None]:
        async def commit_extractions(found):
            await asyncio.to_thread(
                lambda: store.commit(with_vectors(store, HashEncoder(64), Batch(extractions=tuple(found.values()))))
            )

        (tmp_path / "journal").mkdir()
        journal = ExtractionJournal(tmp_path / "journal" / "openie.jsonl", NAME)
        extraction_queue = ExtractionQueue(store, NAME, read, journal, 2)
        shutil.rmtree(tmp_path / "journal")
        ids = [passage_id("", text) for text in texts]
        extraction_queue.start(commit_extractions)
        async with asyncio.timeout(60):
            await extraction_queue.drained()
            extraction_queue.enqueue(ids)
            await extraction_queue.drained()
        assert extraction_queue.failures() == {}
        assert not extraction_queue.ended_tasks()
        await extraction_queue.stop()
        states = [store.extraction_state(id) for id in ids]
        return {None if state is None else state.extractor for state in states}

    with a_store(tmp_path / "store", texts) as store:
        assert asyncio.run(run(store)) == {NAME}


def test_task_ended_by_an_error_is_reported_with_the_error(tmp_path):
    async def run(store: Store) -> list[tuple[str, str]]:
        async def commit_extractions(_found):
            raise RuntimeError("a fault of ours")

        async def read(passage: PassageText) -> Extraction:
            return extraction(passage.id)

        extraction_queue = ExtractionQueue(store, NAME, read, ExtractionJournal(tmp_path / "openie.jsonl", NAME), 2)
        extraction_queue.start(commit_extractions)
        assert not extraction_queue.ended_tasks()
        async with asyncio.timeout(60):
            while not extraction_queue.ended_tasks():
                await asyncio.sleep(0.01)
        ended = [(task.get_name(), str(task.exception())) for task in extraction_queue.ended_tasks()]
        await extraction_queue.stop()
        return ended

    with a_store(tmp_path / "store", ["Ada Kerr built it."]) as store:
        assert asyncio.run(run(store)) == [("extractions", "a fault of ours")]
