"""Documents are read again if a program that reads them was installed, removed or upgraded; no others are."""

import asyncio
from pathlib import Path

import pytest

from consumers.parsing import Limits
from consumers.parsing.programs.installed import CONVERTER, OCR, Program
from consumers.types import Fingerprint
from daemon.app import reparse
from daemon.app.reparse import ProgramWatch
from daemon.config.sections import Parsing
from daemon.parser_pool.pool import ParserPool
from daemon.pipeline.commit.content_index import ContentCounts, DocumentsByFile
from memory.encoder.hashing import HashEncoder
from store.store import Store
from store.types import Batch, Document, Omission, State

READ = Fingerprint(5, 6, 7, "digest").to_json()
DOCUMENTS = {
    "waits for OCR": Document("file:///a.png", "/", state=State.SKIPPED, code="needs Tesseract"),
    "has a page without text": Document("file:///b.pdf", "/", left_out=(Omission("page_without_text", 1, ""),)),
    "was read by OCR": Document("file:///c.pdf", "/", left_out=(Omission("recognised", 1, ""),)),
    "waits for a converter": Document("file:///d.doc", "/", state=State.SKIPPED, code="needs LibreOffice"),
    "was converted": Document("file:///e.doc", "/", metadata={"converted_by": "LibreOffice 7.4"}),
    "needs none": Document("file:///f.txt", "/"),
}
BY_OCR = {"waits for OCR", "has a page without text", "was read by OCR"}
BY_CONVERTER = {"waits for a converter", "was converted"}


def program(identity: str) -> Program:
    return Program("/nowhere", identity)


@pytest.mark.parametrize(
    ("before", "now", "affected"),
    [
        ({}, {}, set()),
        ({}, {OCR: program("Tesseract 5")}, BY_OCR),
        ({OCR: program("Tesseract 5")}, {OCR: program("Tesseract 6")}, BY_OCR),
        ({OCR: program("Tesseract 5")}, {}, BY_OCR),
        ({}, {CONVERTER: program("LibreOffice 7")}, BY_CONVERTER),
        ({OCR: program("Tesseract 5")}, {OCR: program("Tesseract 5")}, set()),
    ],
)
def test_only_documents_of_changed_programs_are_parsed_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: dict[str, Program],
    now: dict[str, Program],
    affected: set[str],
) -> None:
    monkeypatch.setattr(reparse, "find_programs", lambda *_: now)
    again: set[str] = set()

    async def read_again(wanted) -> None:
        again.update(name for name, document in DOCUMENTS.items() if wanted(document))

    with Store(tmp_path, HashEncoder(8).identity) as store:
        pool = ParserPool(limits=Limits(programs=before))
        watch = ProgramWatch(store, store.commit, pool, Parsing())
        watch.check_at_start()
        positions = {document.uri: READ for document in DOCUMENTS.values()}
        store.commit(Batch(tuple(DOCUMENTS.values()), positions=positions))
        asyncio.run(watch.check(read_again))
        assert again == affected and pool.limits.programs == now
        unread = {name for name, each in DOCUMENTS.items() if store.positions[each.uri]["reader"] is None}
        assert unread == affected, "a restart finds them too"
        commit = store.snapshot().commit
        ProgramWatch(store, store.commit, pool, Parsing()).check_at_start()
        assert store.snapshot().commit == commit


def test_program_change_is_retried_after_a_failed_commit_and_counts_stay_correct(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reparse, "find_programs", lambda *_: {OCR: program("Tesseract 5")})
    again: list[str] = []

    async def read_again(wanted) -> None:
        again.extend(name for name, document in DOCUMENTS.items() if wanted(document))

    with Store(tmp_path, HashEncoder(8).identity) as store:
        documents = tuple(DOCUMENTS.values())
        store.commit(Batch(documents, positions={each.uri: READ for each in documents}))
        counts = ContentCounts(store, DocumentsByFile(documents))
        read = counts.readers()
        watch = ProgramWatch(store, counts.commit, ParserPool(), Parsing())
        moved = tmp_path.rename(tmp_path.with_name("elsewhere"))
        with pytest.raises(OSError):
            asyncio.run(watch.check(read_again))
        moved.rename(tmp_path)
        assert not again
        asyncio.run(watch.check(read_again))
        assert set(again) == BY_OCR
        indexed = {name for name in BY_OCR if DOCUMENTS[name].state is State.INDEXED}
        assert counts.readers().total() == read.total() - len(indexed)
