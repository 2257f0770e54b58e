"""Parses and extracts some followed documents again, and compares the result with the store. Changes nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from consumers.folder.file_uri import path_of
from consumers.types import READER_VERSION, Fingerprint
from daemon.parser_pool.pool import ParserFailed, SetAside
from daemon.pipeline.document_changes import unchanged
from daemon.pipeline.document_reader import DocumentReader
from daemon.pipeline.extraction.extractors import PassageExtractor
from daemon.pipeline.work_items import DocumentChange, RetryFile, Urgency, Work, container_uri
from store.store import Store
from store.types import Document, ExtractionOutcome, PassageText, State


@dataclass(slots=True)
class FreshBuildReport:
    """Result of the comparison. `problems` contains one sentence for each document that differs."""

    documents: int = 0
    """Number of compared documents."""
    passages: int = 0
    changed: list[str] = field(default_factory=list)
    """URIs of chosen documents that are not compared because their file has changed since it was indexed."""
    problems: list[str] = field(default_factory=list)


class FreshBuild:
    """Compares documents of followed files with the store. Use on the event loop only."""

    def __init__(self, store: Store, reader: DocumentReader, rules: PassageExtractor | None) -> None:
        """`rules` extracts without a model; if None, extractions are not compared."""
        self._store = store
        self._reader = reader
        self._rules = rules

    def choose(self, count: int, seed: int) -> dict[str, list[Document]]:
        """Returns at most `count` indexed documents of followed files, by file. Equal seeds give equal documents."""
        positions = self._store.positions
        followed = [
            document
            for document in self._store.documents()
            if document.state is State.INDEXED and _is_read(positions.get(container_uri(document.uri)))
        ]
        chosen: dict[str, list[Document]] = {}
        for document in Random(seed).sample(followed, min(count, len(followed))):
            chosen.setdefault(container_uri(document.uri), []).append(document)
        return chosen

    async def compare(self, file: str, documents: Sequence[Document], report: FreshBuildReport) -> None:
        """Parses a file again, and adds differences from its stored `documents` to the report."""
        position = self._store.positions.get(file)
        if position is None:
            report.changed += [document.uri for document in documents]
            return
        changes = await self._parse(file, documents[0].source, Fingerprint.from_json(position))
        final = changes[-1].positions.get(file) if changes else None
        if final is None or position["digest"] is None or final["digest"] != position["digest"]:
            report.changed += [document.uri for document in documents]
            return
        fresh = {document.uri: document for change in changes for document in change.documents}
        texts = {id: text for change in changes for id, text in change.texts.items()}
        for stored in documents:
            if self._store.document(stored.uri) != stored:  # a commit has replaced it meanwhile
                report.changed.append(stored.uri)
                continue
            report.documents += 1
            report.passages += len(stored.passages)
            differences = [*_differences(stored, fresh.get(stored.uri)), *await self._extractions(stored, texts)]
            if differences:
                report.problems.append(f"{stored.uri} differs from a fresh build: {'; '.join(differences)}")

    async def _parse(self, file: str, source: str, position: Fingerprint) -> list[DocumentChange]:
        task = RetryFile(file, path_of(file), source, position.inode)
        for slow in (False, True):
            work = Work(file, task, source, urgency=Urgency.BULK, slow=slow, recognise=True)
            try:
                return [change async for change in self._reader.read(work)]
            except SetAside:
                continue
        return []

    async def _extractions(self, stored: Document, texts: dict[str, PassageText]) -> list[str]:
        """Compares the triples of passages that any version of the rules has extracted."""
        if self._rules is None:
            return []
        found = []
        family = self._rules.name.rpartition("/")[0]
        ids = dict.fromkeys(ref.passage for ref in stored.passages if ref.triples is None and ref.passage in texts)
        for id in ids:
            state = self._store.extraction_state(id)
            if (
                state is None
                or state.status is ExtractionOutcome.FAILED
                or not state.extractor.startswith(f"{family}/")
            ):
                continue
            try:
                [fresh] = await self._rules.extract([texts[id]])
            except ParserFailed as error:
                found.append(f"passage {id} cannot be extracted: {error}")
                continue
            kept = set(self._store.extracted_triples(id))
            missing, excess = len(set(fresh.triples) - kept), len(kept - set(fresh.triples))
            if missing or excess:
                found.append(
                    f"passage {id}, read by {state.extractor}, lacks {missing} triples and has {excess} others"
                )
        return found


def _is_read(position: Mapping[str, Any] | None) -> bool:
    """Whether this version of hippod parsed the file, including its pictures."""
    return position is not None and "digest" in position and position.get("reader") == READER_VERSION


def _differences(stored: Document, fresh: Document | None) -> Iterator[str]:
    if fresh is None:
        yield "its file does not contain it"
    elif fresh.state is not State.INDEXED:
        yield f"its file gives no passages ({fresh.error})"
    elif not unchanged(stored, fresh):
        before, now = [ref.passage for ref in stored.passages], [ref.passage for ref in fresh.passages]
        if before != now:
            yield f"{len(set(now) - set(before))} passages are missing, {len(set(before) - set(now))} differ"
        else:
            parts = ("title", "metadata", "left_out", "source", "passages")
            names = [name for name in parts if getattr(stored, name) != getattr(fresh, name)]
            yield f"different {', '.join('locations or links' if name == 'passages' else name for name in names)}"
