"""`GET /v1/documents/{key}`: a document, passage, phrase or triple, with its connections.

A key is looked up as a document's URI, a passage's id, a triple (its JSON array `["subject", "predicate", "object"]`), and
a phrase, in that order. Lists are cut at `limit` items; `counts` contains their full lengths.
"""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from daemon.contract.base import Request, Response
from daemon.contract.documents import DocumentEntry
from daemon.contract.scope import ScopeParameter


class ShowRequest(Request):
    """The query string of `GET /v1/documents/{key}`: the largest length of each list."""

    limit: int = Field(default=100, ge=1, le=10_000)
    scope: ScopeParameter | None = None


class TripleText(Response):
    subject: str
    predicate: str
    object: str


class WeightedPhrase(Response):
    phrase: str
    weight: float


class PassageSummary(Response):
    """A passage. `location`: its place in the shown document; empty if no document is shown."""

    id: str
    title: str
    text: str
    location: dict[str, Any] = Field(default_factory=dict)


class PassageOccurrence(Response):
    """A document that contains the passage, and the passage's place in it."""

    document: str
    title: str
    location: dict[str, Any] = Field(default_factory=dict)


class DocumentLink(Response):
    """A link of a document, as its author wrote it. `passage`: the id of the passage that contains the link, or that is below
    the heading which contains it."""

    target: str
    heading: str
    text: str
    passage: str


class ShowDocument(Response):
    """A document. `passages` are in reading order; `phrases` and `triples` are those of its passages. `names`: names by which
    queries find the document besides its text."""

    kind: Literal["document"] = "document"
    document: DocumentEntry
    source: str
    next_try_at: AwareDatetime | None = None
    metadata: dict[str, Any]
    names: list[str] = Field(default_factory=list)
    links: list[DocumentLink] = Field(default_factory=list)
    passages: list[PassageSummary]
    phrases: list[str]
    triples: list[TripleText]
    counts: dict[str, int]


class ShowPassage(Response):
    """A passage. `extractor`: the model and prompt that found its triples, here or in the documents' records; null if the
    documents state them. `extraction`: the outcome of the local extraction: `done`, `stand_in` (extracted by a quick
    extractor until the model has processed it) or `failed`, with `extraction_error` and `extraction_attempts`; null if the
    triples are those of the documents.
    """

    kind: Literal["passage"] = "passage"
    id: str
    title: str
    text: str
    extractor: str | None = None
    extraction: str | None = None
    extraction_attempts: int = 0
    extraction_error: str | None = None
    documents: list[PassageOccurrence]
    phrases: list[str]
    triples: list[TripleText]
    counts: dict[str, int]


class ShowPhrase(Response):
    """A phrase. `relations` and `synonyms`: its edges to other phrases, by weight; `passages`: passages that contain it."""

    kind: Literal["phrase"] = "phrase"
    text: str
    passages: list[PassageSummary]
    relations: list[WeightedPhrase]
    synonyms: list[WeightedPhrase]
    triples: list[TripleText]
    counts: dict[str, int]


class ShowTriple(Response):
    """A triple and the passages that state it."""

    kind: Literal["triple"] = "triple"
    subject: str
    predicate: str
    object: str
    passages: list[PassageSummary]
    counts: dict[str, int]


ShowResponse = Annotated[ShowDocument | ShowPassage | ShowPhrase | ShowTriple, Field(discriminator="kind")]
"""`pydantic.TypeAdapter(ShowResponse).validate_json(body)` returns the type that `kind` names."""
