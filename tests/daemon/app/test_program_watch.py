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
def test_the_documents_of_changed_programs_are_read_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: dict[str, Program],
    now: dict[str, Program],
    affected: set[str],
) -> None:
    monkeypatch.setattr(reparse, "find_programs", lambda *_: now)
    again: set[str] = set()

    def read_again(wanted) -> int:
        again.update(name for name, document in DOCUMENTS.items() if wanted(document))
        return len(again)

    with Store(tmp_path, HashEncoder(8).identity) as store:
        pool = ParserPool(limits=Limits(programs=before))
        watch = ProgramWatch(store, pool, Parsing())
        watch.check_at_start()
        positions = {document.uri: READ for document in DOCUMENTS.values()}
        store.commit(Batch(tuple(DOCUMENTS.values()), positions=positions))
        asyncio.run(watch.check(read_again))
        assert again == affected and pool.limits.programs == now
        unread = {name for name, each in DOCUMENTS.items() if store.positions[each.uri]["reader"] is None}
        assert unread == affected, "a restart finds them too"
        commit = store.snapshot().commit
        ProgramWatch(store, pool, Parsing()).check_at_start()
        assert store.snapshot().commit == commit
