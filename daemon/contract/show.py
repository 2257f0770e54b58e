"""`GET /v1/documents/{key}`: one thing of the memory, and what it is connected to.

A key is tried as a document's URI, a passage's id, a triple (its JSON array `["subject", "predicate", "object"]`), and
a phrase, in that order. Lists are cut at the number asked for (`limit`); `counts` says how many there are of each.
"""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from daemon.contract.base import Request, Response
from daemon.contract.documents import DocumentEntry
from daemon.contract.scope import ScopeParameter


class ShowRequest(Request):
    """The query string of `GET /v1/documents/{key}`: how long each list may be."""

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
    """`location` is where the passage is in the document that is shown; empty where no document is shown."""

    id: str
    title: str
    text: str
    location: dict[str, Any] = Field(default_factory=dict)


class PassageOccurrence(Response):
    """A document that holds the passage, and where in the document it is."""

    document: str
    title: str
    location: dict[str, Any] = Field(default_factory=dict)


class DocumentLink(Response):
    """A link of a document, as its author wrote it. `passage`: the id of the passage that holds it, or that stands below the
    heading which holds it."""

    target: str
    heading: str
    text: str
    passage: str


class ShowDocument(Response):
    """`passages` in reading order; `phrases` and `triples` are those of its passages. `names`: what the document is found by
    beside its text."""

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
    """`extractor`: which model and prompt found its triples, here or in the documents' records; `None` if the documents state
    them.

    `extraction` is the outcome of the local extraction: `done`, `stand_in` (read by a quick extractor until the model's turn
    comes) or `failed`, then with `extraction_error` and the number of `extraction_attempts`. It is `None` if the triples are
    those of the documents.
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
    """`relations` and `synonyms` are its edges to other phrases, heaviest first; `passages` hold it."""

    kind: Literal["phrase"] = "phrase"
    text: str
    passages: list[PassageSummary]
    relations: list[WeightedPhrase]
    synonyms: list[WeightedPhrase]
    triples: list[TripleText]
    counts: dict[str, int]


class ShowTriple(Response):
    """The passages it was extracted from."""

    kind: Literal["triple"] = "triple"
    subject: str
    predicate: str
    object: str
    passages: list[PassageSummary]
    counts: dict[str, int]


ShowResponse = Annotated[ShowDocument | ShowPassage | ShowPhrase | ShowTriple, Field(discriminator="kind")]
"""`pydantic.TypeAdapter(ShowResponse).validate_json(body)` gives the one that `kind` names."""
