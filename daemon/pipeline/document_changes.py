"""Makes changes from parsed documents, records and failures: converts them to the store's documents and passage texts."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

from consumers.failure_codes import FailureCode
from consumers.records.record import PassageExtraction, Record
from consumers.records.writer import storable
from consumers.types import Link as ParsedLink
from consumers.types import ParsedDocument, Passage
from daemon.pipeline.records import POSITION
from daemon.pipeline.work_items import AddedDocument, DeliveredDocument, DocumentChange, Task, Work
from memory.phrase_normalisation import normalise_triple
from store.log.extraction_costs import add_costs
from store.types import Document, Link, Omission, PassageRef, PassageText, State, Triple, passage_id

RETRY_DELAYS_S = (60.0, 600.0, 3600.0)
"""Delays before a failed document is retried automatically. Later retries need `hippoctl retry` or a change of the file."""

SLOW_RETRY_DELAYS_S = (600.0, 6 * 3600.0, 24 * 3600.0)
"""Delays for a document that exceeded the time limit: each retry takes the whole limit."""


def passage_text(passage: Passage) -> PassageText:
    """Returns the passage in the store's form. U+0000, which `passage_id` reserves as a separator, becomes U+FFFD in titles."""
    title, text = storable(passage.title).replace("\0", "\ufffd"), storable(passage.text)
    return PassageText(passage_id(title, text), title, text)


def to_store_document(
    read: ParsedDocument, source: str, attempts: int = 0, payload: str | None = None
) -> tuple[Document, list[PassageText]]:
    """Returns the document in the store's form, and the texts of its passages."""
    left_out = tuple(Omission(each.kind.value, each.count, storable(each.text)) for each in read.left_out)
    if read.error is not None:
        failed = failed_document(
            read.uri, source, read.error, read.code or FailureCode.OTHER, attempts, read.skipped, payload, read.title
        )
        return replace(failed, left_out=left_out), []
    texts: list[PassageText] = []
    refs: list[PassageRef] = []
    for passage in read.passages:
        texts.append(passage_text(passage))
        triples = normalised_triples(passage.triples)
        refs.append(PassageRef(texts[-1].id, dict(passage.location), triples, links=_links(passage.links)))
    document = Document(
        uri=read.uri,
        source=source,
        title=storable(read.title),
        state=State.INDEXED,
        modified_at=read.modified_at,
        metadata=dict(read.metadata),
        passages=tuple(refs),
        left_out=left_out,
    )
    return document, texts


def _links(links: Sequence[ParsedLink]) -> tuple[Link, ...]:
    return tuple(Link(storable(link.target), storable(link.heading), storable(link.text)) for link in links)


@overload
def normalised_triples(triples: Sequence[Triple], *, mentions: bool = False) -> tuple[Triple, ...]: ...


@overload
def normalised_triples(triples: Sequence[Triple] | None, *, mentions: bool = False) -> tuple[Triple, ...] | None: ...


def normalised_triples(triples: Sequence[Triple] | None, *, mentions: bool = False) -> tuple[Triple, ...] | None:
    """Returns normalised triples, without duplicate and empty triples; None for None.

    `mentions` keeps mention edges, which hippod's extractors find but documents cannot state.
    """
    if triples is None:
        return None
    normalised = (normalise_triple(triple, mentions=mentions) for triple in triples)
    return tuple(dict.fromkeys(triple for triple in normalised if triple is not None))


def failed_document(
    uri: str,
    source: str,
    reason: str,
    code: FailureCode,
    attempts: int,
    skipped: bool,
    payload: str | None = None,
    title: str = "",
) -> Document:
    """Returns a document that could not be parsed (`failed`) or is excluded (`skipped`), with the time of its next retry."""
    delays = SLOW_RETRY_DELAYS_S if code is FailureCode.TIME else RETRY_DELAYS_S
    next_try = time.time() + delays[attempts] if not skipped and attempts < len(delays) else None
    return Document(
        uri=uri,
        source=source,
        title=storable(title),
        state=State.SKIPPED if skipped else State.FAILED,
        error=storable(reason),
        code=code.value,
        attempts=attempts + 1,
        next_try=next_try,
        payload=payload,
    )


def unchanged(old: Document | None, new: Document) -> bool:
    """Returns whether `new` equals `old`, except possibly in the time."""
    return old is not None and (
        old.state is new.state is State.INDEXED
        and old.passages == new.passages
        and old.title == new.title
        and old.metadata == new.metadata
        and old.left_out == new.left_out
        and old.source == new.source
    )


def retry_payload(task: Task) -> str | None:
    """Returns the data that a retry of a failed task without a file needs; None if the retry needs no data."""
    if isinstance(task, AddedDocument):
        return task.text
    if isinstance(task, DeliveredDocument) and task.payload is not None:
        return task.payload()
    return None


def failed_change(work: Work, reason: str, code: FailureCode) -> DocumentChange:
    """Returns the change for failed work: a failed document with the data that a retry needs."""
    payload = retry_payload(work.task)
    failed = failed_document(work.key, work.source, reason, code, work.attempts, skipped=False, payload=payload)
    return DocumentChange(work, [failed])


def internal_reason(error: Exception) -> str:
    """Returns the error text for a document that causes an internal error of hippod."""
    return f"internal error: {error!r}; see the log"


def delivered_change(work: Work, task: DeliveredDocument) -> DocumentChange:
    """Returns the change for a document that its source has parsed."""
    if task.document is None:
        return DocumentChange(work)
    if task.record is not None:
        change = document_change(
            work, [task.document], retry_payload(task) if task.document.error is not None else None
        )
        _take_record(change, task.record)
        return change
    failing = task.document.error is not None and not task.document.skipped
    change = document_change(work, [task.document], retry_payload(task) if failing else None)
    if failing:
        # The same bytes would fail again, so schedule no retry. Keep the metadata: it contains the message's position.
        change.documents = [
            replace(
                document, next_try=None, metadata=dict(task.document.metadata), modified_at=task.document.modified_at
            )
            for document in change.documents
        ]
    return change


def document_change(
    work: Work, parsed: list[ParsedDocument], payload: str | None, final: bool = True
) -> DocumentChange:
    """Returns the change for parsed documents. `payload` is the data that a retry of a failed document needs."""
    documents: list[Document] = []
    texts: dict[str, PassageText] = {}
    for item in parsed:
        if item.deleted:
            continue  # a document that is not in `work.seen` is removed
        retried_from = payload if item.error is not None else None
        document, passages = to_store_document(item, work.source, work.attempts, retried_from)
        documents.append(document)
        texts.update((passage.id, passage) for passage in passages)
    return DocumentChange(work, documents, texts, final=final)


def imported_passage(uri: str, value: dict[str, Any]) -> ParsedDocument:
    """Returns the document of an imported passage, with its triples."""
    triples = tuple((str(s), str(p), str(o)) for s, p, o in value["triples"])
    return ParsedDocument(uri, value["title"], (Passage(value["title"], value["text"], {}, triples),))


def _take_record(change: DocumentChange, record: Record) -> None:
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
