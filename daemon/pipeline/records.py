"""Applies records to the store. A record's triples and vectors are used unchanged; old records never replace newer ones."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from consumers.records.record import PassageExtraction, Record, RecordError, SourcePosition
from daemon.pipeline.document_mapping import normalised_triples
from daemon.pipeline.work_items import DeliveredDocument, DocumentChange, Task
from memory.batch_encoding import EncodedAhead, triple_text
from store.log.extraction_costs import add_costs
from store.store import Store
from store.types import EncoderIdentity, PassageRef, PassageText

POSITION = "record"
"""Metadata key of a document for the source position of its record."""
REMOVED_PREFIX = "removed:"
"""Prefix of the store's positions for the source positions of removals."""
REMEMBERED_REMOVALS = 100_000
"""Number of the newest removals to remember, so that an older record does not restore a removed document."""


def take_record(change: DocumentChange, record: Record) -> None:
    """Adds the record's extractions, costs and vectors to the change made from its document.

    Extractions are stored per document, not per passage: another document with other labels may contain the same text.
    """
    at = {POSITION: record.position.to_json()} if record.position is not None else {}
    for number, document in enumerate(change.documents):
        stated = {key: value for key, value in document.metadata.items() if key != POSITION}
        change.documents[number] = replace(document, metadata=stated | at)
    if record.document.error is not None or record.document.deleted:
        return
    [document] = change.documents
    pairs = zip(document.passages, record.extractions, strict=True)
    refs = tuple(_with_extraction(ref, extraction) for ref, extraction in pairs)
    change.documents = [replace(document, passages=refs)]
    change.record = record
    for extraction in record.extractions:
        if extraction is not None and extraction.error is None:
            cost = {extraction.extractor: (1, extraction.prompt_tokens, extraction.completion_tokens)}
            change.supplied_costs = add_costs(change.supplied_costs, cost)


def _with_extraction(ref: PassageRef, extraction: PassageExtraction | None) -> PassageRef:
    """Returns the passage with the triples of the record's extraction, which belong to this document only.

    Triples that the document itself states take precedence. If the record's extraction failed, the local extractor is used.
    """
    if extraction is None or extraction.error is not None or ref.triples is not None:
        return ref
    return replace(ref, triples=normalised_triples(extraction.triples, mentions=True), extractor=extraction.extractor)


def encoded_by_record(record: Record, identity: EncoderIdentity) -> EncodedAhead:
    """Returns the record's vectors by text; empty if another encoder made them."""
    ahead, vectors = EncodedAhead(), record.vectors
    if vectors is None or (vectors.encoder, vectors.dim) != (identity.name, identity.dim):
        return ahead
    texts = [PassageText("", passage.title, passage.text).full for passage in record.document.passages]
    if len(vectors.passages):
        ahead.rough.update(zip(texts, vectors.passages, strict=True))
    ahead.rough.update(zip(map(triple_text, vectors.triples), vectors.triple_vectors, strict=True))
    ahead.exact.update(zip(vectors.phrases, vectors.phrase_vectors, strict=True))
    return ahead


def record_of(task: Task) -> Record | None:
    return task.record if isinstance(task, DeliveredDocument) else None


def is_overtaken(store: Store, task: Task) -> bool:
    """Returns whether the store has applied a later version of the document than the task's record, or a later removal."""
    record = record_of(task)
    if record is None or record.position is None:
        return False
    known = stored_position(store, record.uri)
    return known is not None and record.position.is_before(known)


def stored_position(store: Store, uri: str) -> SourcePosition | None:
    """Returns the source position of the newest applied record of a document."""
    document = store.document(uri)
    value = store.positions.get(REMOVED_PREFIX + uri) if document is None else document.metadata.get(POSITION)
    try:
        return SourcePosition.from_json(value)
    except RecordError:
        return None  # not a record's position, possibly written into the metadata by the document's author


class RemovedRecords:
    """The removals stored as positions, oldest first. Use on the event loop only."""

    def __init__(self, positions: Mapping[str, Any]) -> None:
        self._keys = dict.fromkeys(key for key in positions if key.startswith(REMOVED_PREFIX))

    def positions(self, records: Iterable[Record]) -> dict[str, Any]:
        """Returns the positions to commit with `records`. Changes nothing: a batch may be assembled several times."""
        found: dict[str, Any] = {}
        for record in records:
            key = REMOVED_PREFIX + record.uri
            if record.document.deleted and record.position is not None:
                found[key] = record.position.to_json()
            elif key in self._keys:
                found[key] = None
        added = sum(value is not None and key not in self._keys for key, value in found.items())
        oldest = (key for key in self._keys if key not in found)
        return found | dict.fromkeys(islice(oldest, max(len(self._keys) + added - REMEMBERED_REMOVALS, 0)))

    def committed(self, positions: Mapping[str, Any]) -> None:
        for key, value in positions.items():
            if key.startswith(REMOVED_PREFIX):
                self._keys.pop(key, None)
                if value is not None:
                    self._keys[key] = None
