"""What `show` answers: one thing of the memory, and what it is connected to.

A key is tried as a document's URI, a passage's id, a triple (its JSON array `["subject", "predicate", "object"]`), and
a phrase, in that order. Lists are cut at the number asked for (`limit`); `counts` says how many there are of each.
"""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from daemon.contract.documents import DocumentEntry
from daemon.contract.model import Response


class TripleText(Response):
    subject: str
    predicate: str
    object: str


class WeightedPhrase(Response):
    phrase: str
    weight: float


class PassageBrief(Response):
    """`location` is where the passage stands in the document that is shown; empty when no one document is meant."""

    id: str
    title: str
    text: str
    location: dict[str, Any] = Field(default_factory=dict)


class Place(Response):
    """A document that holds a passage, and where in it."""

    document: str
    title: str
    location: dict[str, Any] = Field(default_factory=dict)


class ShowDocument(Response):
    """`passages` in reading order; `phrases` and `triples` are those of its passages."""

    kind: Literal["document"] = "document"
    document: DocumentEntry
    source: str
    next_try_at: AwareDatetime | None = None
    metadata: dict[str, Any]
    passages: list[PassageBrief]
    phrases: list[str]
    triples: list[TripleText]
    counts: dict[str, int]


class ShowPassage(Response):
    """`extractor`: which model and prompt made its triples; `None` where they came with the document."""

    kind: Literal["passage"] = "passage"
    id: str
    title: str
    text: str
    extractor: str | None = None
    documents: list[Place]
    phrases: list[str]
    triples: list[TripleText]
    counts: dict[str, int]


class ShowPhrase(Response):
    """`relations` and `synonyms` are its edges to other phrases, heaviest first; `passages` hold it."""

    kind: Literal["phrase"] = "phrase"
    text: str
    passages: list[PassageBrief]
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
    passages: list[PassageBrief]
    counts: dict[str, int]


ShowResponse = Annotated[ShowDocument | ShowPassage | ShowPhrase | ShowTriple, Field(discriminator="kind")]
"""`pydantic.TypeAdapter(ShowResponse).validate_json(body)` gives the one that `kind` names."""
