"""References from answers to documents and their passages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from daemon.contract.answering.ask import Citation, RetrievedPassage
from daemon.contract.base import utc_time
from daemon.contract.choices import DocumentState
from daemon.contract.documents import DocumentEntry, LeftOut
from store.snapshot import DocumentLookup
from store.types import Document


@dataclass(frozen=True, slots=True)
class PassageSource:
    """The documents that contain a passage. `document` is the first of these documents by URI; None if a commit has just
    removed all of them."""

    title: str
    uris: Sequence[str]
    document: Document | None

    @property
    def uri(self) -> str:
        """URI of the first document, or ""."""
        return self.uris[0] if self.uris else ""


def passage_source(documents: DocumentLookup, id: str, title: str) -> PassageSource:
    """Returns the documents that contain passage `id`; the title is that of the passage, or else of the first document."""
    uris = documents.documents_with_passage(id)
    document = documents.document(uris[0]) if uris else None
    return PassageSource(title or (document.title if document else ""), uris, document)


def other_documents(documents: DocumentLookup, source: PassageSource, versions: Sequence[str]) -> list[str]:
    """Returns the URIs of other documents with the passage, then of documents with its older `versions` (ids of passages)."""
    uris = [*source.uris, *(uri for id in versions for uri in documents.documents_with_passage(id))]
    return [uri for uri in dict.fromkeys(uris) if uri != source.uri]


def citation(
    documents: DocumentLookup, rank: int, id: str, title: str, text: str, points: Sequence[str] = ()
) -> Citation:
    source = passage_source(documents, id, title)
    return Citation(rank=rank, document=source.uri, title=source.title, text=text, id=id, points=list(points))


class _Found(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float: ...


def retrieved_passage(
    documents: DocumentLookup, rank: int, found: _Found, versions: Sequence[str] = ()
) -> RetrievedPassage:
    source = passage_source(documents, found.id, found.title)
    return RetrievedPassage(
        rank=rank,
        score=found.score,
        id=found.id,
        title=source.title,
        text=found.text,
        document=source.uri,
        also_in=other_documents(documents, source, versions),
    )


def document_entry(document: Document) -> DocumentEntry:
    """Returns the document as an entry of `hippoctl ls`."""
    return DocumentEntry(
        uri=document.uri,
        title=document.title,
        state=DocumentState(document.state.value),
        error=document.error,
        code=document.code,
        passages=len(document.passages),
        attempts=document.attempts,
        modified_at=utc_time(document.modified_at),
        committed_at=utc_time(document.committed_at),
        left_out=[LeftOut(kind=each.kind, count=each.count, text=each.text) for each in document.left_out],
    )
