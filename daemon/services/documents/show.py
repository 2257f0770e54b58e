"""`show`: a document, passage, triple or phrase, with its connections."""

import json
from collections.abc import Callable, Iterable

import numpy as np

from daemon.contract.documents import (
    DocumentLink,
    PassageOccurrence,
    PassageSummary,
    ShowDocument,
    ShowPassage,
    ShowPhrase,
    ShowResponse,
    ShowTriple,
    TripleText,
    WeightedPhrase,
)
from daemon.services.documents.document_states import CurrentStates
from memory.phrase_normalisation import normalise_phrase, normalise_triple
from store.index.delta_csr import MatrixView
from store.index.effective_triples import supplied_triples
from store.links.names import document_names
from store.snapshot import DocumentSnapshot, Snapshot
from store.types import Document, ExtractionState


def show(
    memory: DocumentSnapshot,
    extraction_of: Callable[[str], ExtractionState | None],
    key: str,
    limit: int,
    states: CurrentStates,
) -> ShowResponse | None:
    """Returns what `key` denotes: a document (its URI), a passage (its id), a triple (a JSON array) or a phrase. None if
    unknown.

    `extraction_of` returns the state of the local extraction of a passage with this id.
    """
    document = memory.document(key)
    snapshot = memory.snapshot
    if document is not None:
        return _document(snapshot, document, limit, states)
    passage = snapshot.passage_row(key)
    if passage is not None:
        return _passage(memory, extraction_of, passage, limit)
    if key.lstrip().startswith("["):
        triple = _triple_row(snapshot, key)
        return _triple(snapshot, triple, limit) if triple is not None else None
    phrase = snapshot.phrase_row(normalise_phrase(key))
    return _phrase(snapshot, phrase, limit) if phrase is not None else None


def _document(snapshot: Snapshot, document: Document, limit: int, states: CurrentStates) -> ShowDocument:
    rows = [(ref, snapshot.passage_row(ref.passage)) for ref in document.passages]
    passage_rows = [row for _, row in rows if row is not None]
    phrases = _columns(snapshot.context, passage_rows)
    triples = _statements(snapshot, passage_rows)
    passages = [_brief(snapshot, row, dict(ref.location)) for ref, row in rows[:limit] if row is not None]
    links = [
        DocumentLink(target=link.target, heading=link.heading, text=link.text, passage=ref.passage)
        for ref in document.passages
        for link in ref.links
    ]
    return ShowDocument(
        document=states.entry(document),
        source=document.source,
        next_try_at=states.next_try_at(document),
        metadata=dict(document.metadata),
        names=list(document_names(document).all),
        links=links[:limit],
        passages=passages,
        phrases=[snapshot.phrase(row) for row in phrases][:limit],
        triples=_triples(snapshot, triples, limit),
        counts={
            "passages": len(document.passages),
            "links": len(links),
            "phrases": len(phrases),
            "triples": len(triples),
        },
    )


def _passage(
    memory: DocumentSnapshot, extraction_of: Callable[[str], ExtractionState | None], row: int, limit: int
) -> ShowPassage:
    snapshot = memory.snapshot
    passage = snapshot.passage(row)
    phrases = _columns(snapshot.context, [row])
    triples = _statements(snapshot, [row])
    uris = memory.documents_with_passage(passage.id)
    places = []
    names: set[str] = set()
    for uri in uris[:limit]:
        document = memory.document(uri)
        if document is not None:
            refs = [ref for ref in document.passages if ref.passage == passage.id]
            names.update(ref.extractor for ref in refs if ref.extractor is not None)
            places.append(
                PassageOccurrence(document=uri, title=document.title, location=dict(refs[0].location) if refs else {})
            )
    extraction = None
    if supplied_triples(memory.holders[row]) is None:
        extraction = extraction_of(passage.id)
        names = {extraction.label} if extraction is not None else set()
    return ShowPassage(
        id=passage.id,
        title=passage.title,
        text=passage.text,
        extractor=", ".join(sorted(names)) or None,
        extraction=extraction.status.value if extraction is not None else None,
        extraction_attempts=extraction.attempts if extraction is not None else 0,
        extraction_error=extraction.error if extraction is not None else None,
        documents=places,
        phrases=[snapshot.phrase(column) for column in phrases][:limit],
        triples=_triples(snapshot, triples, limit),
        counts={"documents": len(uris), "phrases": len(phrases), "triples": len(triples)},
    )


def _phrase(snapshot: Snapshot, row: int, limit: int) -> ShowPhrase:
    _, passages = snapshot.context.column_entries(np.array([row]))
    ends = snapshot.triple_ends
    triples = np.flatnonzero(((ends[:, 0] == row) | (ends[:, 1] == row)) & snapshot.statement_alive)
    relations = _neighbours(snapshot, snapshot.relation, row)
    synonyms = _neighbours(snapshot, snapshot.synonym, row)
    return ShowPhrase(
        text=snapshot.phrase(row),
        passages=[_brief(snapshot, int(passage)) for passage in passages[:limit]],
        relations=relations[:limit],
        synonyms=synonyms[:limit],
        triples=_triples(snapshot, triples.tolist(), limit),
        counts={
            "passages": len(passages),
            "relations": len(relations),
            "synonyms": len(synonyms),
            "triples": len(triples),
        },
    )


def _triple_row(snapshot: Snapshot, key: str) -> int | None:
    try:
        triple = normalise_triple(json.loads(key))
    except (ValueError, RecursionError):
        return None
    if triple is None:
        return None
    subject, object_ = snapshot.phrase_row(triple[0]), snapshot.phrase_row(triple[2])
    if subject is None or object_ is None:
        return None
    ends = snapshot.triple_ends
    rows = np.flatnonzero((ends[:, 0] == subject) & (ends[:, 1] == object_) & snapshot.triple_alive)
    return next((int(row) for row in rows if snapshot.triple(int(row)) == triple), None)


def _triple(snapshot: Snapshot, row: int, limit: int) -> ShowTriple:
    subject, predicate, object_ = snapshot.triple(row)
    passages = snapshot.passages_of(np.array([row]))[row]
    return ShowTriple(
        subject=subject,
        predicate=predicate,
        object=object_,
        passages=[_brief(snapshot, passage) for passage in passages[:limit]],
        counts={"passages": len(passages)},
    )


def _columns(view: MatrixView, rows: list[int]) -> list[int]:
    return sorted({int(column) for column in view.entries(np.array(rows, np.int64))[1]})


def _statements(snapshot: Snapshot, passages: list[int]) -> list[int]:
    """Returns the rows of the passages' statements. Omits mention edges, which state no fact."""
    return [row for row in _columns(snapshot.incidence, passages) if snapshot.is_statement[row]]


def _brief(snapshot: Snapshot, row: int, location: dict[str, object] | None = None) -> PassageSummary:
    passage = snapshot.passage(row)
    return PassageSummary(id=passage.id, title=passage.title, text=passage.text, location=location or {})


def _triples(snapshot: Snapshot, rows: Iterable[int], limit: int) -> list[TripleText]:
    texts = sorted(snapshot.triple(int(row)) for row in rows)[:limit]
    return [TripleText(subject=s, predicate=p, object=o) for s, p, o in texts]


def _neighbours(snapshot: Snapshot, view: MatrixView, row: int) -> list[WeightedPhrase]:
    columns, weights = view.row(row)
    found = [(snapshot.phrase(int(c)), float(w)) for c, w in zip(columns, weights, strict=True)]
    return [WeightedPhrase(phrase=p, weight=w) for p, w in sorted(found, key=lambda item: (-item[1], item[0]))]
