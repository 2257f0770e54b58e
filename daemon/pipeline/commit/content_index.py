"""Indexes of the stored contents, in memory: the documents of each file, and counts of passages and documents by the extractors
and readers that made them. A commit updates them in time proportional to its batch."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from daemon.pipeline.work_items import container_uri
from store.store import CommitResult, Store
from store.types import Batch, Document, ExtractionOutcome, State


class DocumentsByFile:
    """The documents of each file, in memory because the store cannot look up a URI prefix."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._uris: dict[str, set[str]] = {}
        for document in documents:
            self.add(document.uri)

    def __iter__(self) -> Iterator[str]:
        """Iterates over the URIs of files with documents, and the URIs of documents that belong to no file."""
        return iter(self._uris)

    def add(self, uri: str) -> None:
        self._uris.setdefault(container_uri(uri), set()).add(uri)

    def discard(self, uri: str) -> None:
        key = container_uri(uri)
        uris = self._uris.get(key)
        if uris is not None:
            uris.discard(uri)
            if not uris:
                del self._uris[key]

    def update(self, batch: Batch) -> None:
        """Applies the additions and removals of a commit."""
        for document in batch.documents:
            self.add(document.uri)
        for uri in batch.removed:
            self.discard(uri)

    def count(self, key: str) -> int:
        """Returns the number of documents in a file. May be called from any thread."""
        return len(self._uris.get(key, ()))

    def of(self, key: str) -> set[str]:
        """Returns the URIs of the documents in the file `key`, or of the document `key`."""
        return self._uris.get(key, set())


class ContentCounts:
    """Numbers of passages by extractor and of followed documents by reader, and the extractors' speed. Thread-safe.

    The first call of a counting method counts everything, and blocks commits meanwhile. Before this call, commits count
    nothing. Passages and documents are counted in memory, so that `status` answers even if the store's folder has disappeared;
    the extractors' speed is read from a table.
    """

    def __init__(self, store: Store, documents_by_file: DocumentsByFile) -> None:
        self._store = store
        self._documents_by_file = documents_by_file
        self._lock = threading.Lock()
        """Held during commits and the first count."""
        self._known = False
        self._extractors: Counter[str] = Counter()
        self._readers: Counter[str] = Counter()
        self._times: dict[str, tuple[int, float]] | None = None

    def extractors(self) -> Counter[str]:
        """Returns the number of living passages by extractor, as `StoreReader.passages_by_extractor` does."""
        self._count()
        return +self._extractors

    def readers(self) -> Counter[str]:
        """Returns the number of followed documents by the version of the reader that parsed them."""
        self._count()
        return +self._readers

    def mean_ms(self, counts: Callable[[str], bool]) -> float | None:
        """Returns the mean time per passage (ms) of the extractors whose names `counts` accepts; None if no time is known."""
        self._count()
        with self._lock:
            if self._times is None:
                self._times = self._store.extraction_times()
            every = self._times
        times = [time for name, time in every.items() if counts(name)]
        count = sum(number for number, _ in times)
        return sum(ms for _, ms in times) / count if count else None

    def commit(self, batch: Batch) -> CommitResult:
        """Commits `batch` to the store and updates the counts."""
        with self._lock:
            if not self._known:
                return self._store.commit(batch)
            documents, passages = self._touched(batch)
            before = self._labels(documents, passages)
            result = self._store.commit(batch)
            # New objects, so that readers need no lock.
            extractors, readers = self._extractors.copy(), self._readers.copy()
            for counts, old, new in zip((extractors, readers), before, self._labels(documents, passages), strict=True):
                counts.update(new)
                counts.subtract(old)
            self._extractors, self._readers = extractors, readers
            if self._times is not None:
                times = self._times.copy()
                for each in batch.extractions:
                    # The store ignores extractions of passages that it does not contain.
                    if each.status is not ExtractionOutcome.FAILED and self._store.passage(each.passage) is not None:
                        count, ms = times.get(each.extractor, (0, 0.0))
                        times[each.extractor] = count + 1, ms + each.took_ms
                self._times = times
            return result

    def _count(self) -> None:
        """Counts the stored contents unless they are counted already."""
        if not self._known:
            with self._lock:
                if not self._known:
                    self._extractors = Counter(self._store.passages_by_extractor())
                    self._readers = self._readers_of(document.uri for document in self._store.documents())
                    self._known = True

    def _touched(self, batch: Batch) -> tuple[set[str], set[str]]:
        """Returns the URIs of documents and the ids of passages whose extractor or reader `batch` may change."""
        written = {document.uri for document in batch.documents} | set(batch.removed)
        passages = {extraction.passage for extraction in batch.extractions}
        for document in (*batch.documents, *filter(None, map(self._store.document, written))):
            passages.update(ref.passage for ref in document.passages)
        positions = self._store.positions
        for file, position in batch.positions.items():
            if _reader(positions.get(file)) != _reader(position):
                written |= self._documents_by_file.of(file)
        return written, passages

    def _labels(self, documents: Iterable[str], passages: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
        labels = map(self._store.extractor_label, passages)
        return Counter(label for label in labels if label is not None), self._readers_of(documents)

    def _readers_of(self, uris: Iterable[str]) -> Counter[str]:
        positions = self._store.positions
        indexed = (
            uri
            for uri in uris
            if (document := self._store.document(uri)) is not None and document.state is State.INDEXED
        )
        labels = (_reader(positions.get(container_uri(uri))) for uri in indexed)
        return Counter(label for label in labels if label is not None)


def _reader(position: Any) -> str | None:
    """Returns the name of the reader that parsed a followed file. Returns None if the position belongs to no followed file, or
    if the file waits to be parsed again, for example with OCR."""
    if not isinstance(position, dict) or "inode" not in position:
        return None
    reader = position.get("reader", 0)
    return None if reader is None else f"reader/{reader}"
