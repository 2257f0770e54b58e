"""Makes records from parsed documents: extracts and encodes them like the daemon before a commit."""

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import structlog
from numpy.typing import NDArray

from consumers.records.record import PassageExtraction, Record, RecordVectors, SourcePosition
from consumers.types import ParsedDocument
from daemon.observe.metrics import timed
from daemon.parser_pool.pool import ParserFailed
from daemon.pipeline.document_changes import normalised_triples, passage_text
from daemon.pipeline.extraction.extractors import PassageExtractor, extract_each
from memory.batch_encoding import EncodedAhead, slices, triple_text
from memory.types import Encoder
from store.types import EncoderIdentity, Extraction, ExtractionOutcome, PassageText, Triple, is_statement

ENCODE_SLICE_CHARS = 65_536
"""Maximum characters that are encoded at once; shorter texts come first."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class PositionedDocument:
    """A document with its source position. If its `deleted` is true, the document is to be removed."""

    document: ParsedDocument
    position: SourcePosition | None


class RecordMaker:
    """Extracts and encodes documents. Use on the event loop; encodes on `executor`. Without an encoder, records have no
    vectors."""

    def __init__(self, extractor: PassageExtractor, encoder: Encoder | None, executor: Executor | None = None) -> None:
        self._extractor = extractor
        self._encoder = encoder
        self._executor = executor

    async def make(self, documents: Sequence[PositionedDocument]) -> list[Record]:
        """Returns a record for each document, in order."""
        return await self.encoded(await self.extracted(documents))

    async def extracted(self, documents: Sequence[PositionedDocument]) -> list[Record]:
        """Returns a record without vectors for each document, in order. Extracts from a shared passage only once."""
        found = await self._extract(each.document for each in documents)
        return [_record(each, found) for each in documents]

    async def encoded(self, records: Sequence[Record]) -> list[Record]:
        """Returns the records with vectors. Raises the encoder's exceptions."""
        if self._encoder is None or not any(record.document.passages for record in records):
            return list(records)
        with timed("encode"):
            ahead = await asyncio.get_running_loop().run_in_executor(self._executor, _encode, self._encoder, records)
        return [_with_vectors(record, ahead, self._encoder.identity) for record in records]

    async def _extract(self, documents: Iterable[ParsedDocument]) -> dict[str, Extraction]:
        passages = [
            passage
            for document in documents
            if document.error is None
            for passage in document.passages
            if passage.triples is None
        ]
        texts = {text.id: text for text in map(passage_text, passages)}
        if not texts:
            return {}
        with timed("extract"):
            found = await extract_each(self._extractor, list(texts.values()), self._failure)
        return {each.passage: each for each in found}

    def _failure(self, passage: PassageText, error: ParserFailed) -> list[Extraction]:
        log.warning("passage_failed", passage=passage.id, attempts=1)
        failed = ExtractionOutcome.FAILED
        return [Extraction(passage.id, self._extractor.name, status=failed, attempts=1, error=str(error))]


def _record(each: PositionedDocument, found: dict[str, Extraction]) -> Record:
    extractions = [
        None if passage.triples is not None else _travelling(found.get(passage_text(passage).id))
        for passage in each.document.passages
    ]
    return Record(each.document, tuple(extractions), each.position)


def _travelling(found: Extraction | None) -> PassageExtraction | None:
    if found is None:
        return None
    failed = found.status is ExtractionOutcome.FAILED
    return PassageExtraction(
        found.extractor,
        found.entities,
        found.triples,
        found.prompt_tokens,
        found.completion_tokens,
        found.took_ms,
        (found.error or "no reason was given") if failed else None,
    )


def _encode(encoder: Encoder, records: Sequence[Record]) -> EncodedAhead:
    """Encodes every distinct text of the records, in slices of texts of similar length."""
    ahead = EncodedAhead()
    rough: dict[str, None] = {}
    exact: dict[str, None] = {}
    for record in records:
        triples = _triples(record)
        statements = filter(is_statement, triples)
        rough |= dict.fromkeys(
            [*(passage_text(passage).full for passage in record.document.passages), *map(triple_text, statements)]
        )
        exact |= dict.fromkeys(_phrases(triples))
    for part in slices(sorted(rough, key=len), ENCODE_SLICE_CHARS):
        ahead.encode_slice(encoder, part, [])
    for part in slices(sorted(exact, key=len), ENCODE_SLICE_CHARS):
        ahead.encode_slice(encoder, [], part)
    return ahead


def _with_vectors(record: Record, ahead: EncodedAhead, identity: EncoderIdentity) -> Record:
    if not record.document.passages:
        return record
    triples = _triples(record)
    phrases, statements = _phrases(triples), tuple(filter(is_statement, triples))
    vectors = RecordVectors(
        identity.name,
        identity.dim,
        _rows([ahead.rough[passage_text(passage).full] for passage in record.document.passages], identity.dim),
        tuple(phrases),
        _rows([ahead.exact[phrase] for phrase in phrases], identity.dim),
        statements,
        _rows([ahead.rough[triple_text(statement)] for statement in statements], identity.dim),
    )
    return Record(record.document, record.extractions, record.position, vectors)


def _rows(vectors: Sequence[NDArray[np.float32]], dim: int) -> NDArray[np.float32]:
    return np.stack(vectors) if vectors else np.empty((0, dim), np.float32)


def _triples(record: Record) -> list[Triple]:
    """Returns the distinct triples of a record in the store's normal form."""
    found: dict[Triple, None] = {}
    for passage, extraction in zip(record.document.passages, record.extractions, strict=True):
        if passage.triples is not None:
            found |= dict.fromkeys(normalised_triples(passage.triples))
        elif extraction is not None:
            found |= dict.fromkeys(normalised_triples(extraction.triples, mentions=True))
    return list(found)


def _phrases(triples: Iterable[Triple]) -> list[str]:
    return list(dict.fromkeys(phrase for subject, _, object_ in triples for phrase in (subject, object_)))
