"""The vectors that records supply, and the order of records: an older record never replaces a newer one."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from consumers.records.record import Record, RecordError, SourcePosition
from daemon.pipeline.work_items import DeliveredDocument, Task
from memory.batch_encoding import EncodedAhead, triple_text
from store.store import Store
from store.types import EncoderIdentity, PassageText

POSITION = "record"
"""Metadata key of a document for the source position of its record."""
REMOVED_PREFIX = "removed:"
"""Prefix of the store's positions for the source positions of removals."""
REMEMBERED_REMOVALS = 100_000
"""Number of the newest removals to remember, so that an older record does not restore a removed document."""


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
    """Returns whether the store contains a later version of the document than the task's record, or a later removal."""
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
        return None  # not a record's position: the document's author may have written this metadata


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
