"""What a query finds, and why."""

from typing import Any

from pydantic import Field

from daemon.contract.model import OpenResponse, Response, absent


class RankedPassage(Response):
    """`rank` counts from 1. `document`: the first, by URI, that holds the passage; `also_in`: the others."""

    rank: int
    score: float
    id: str
    title: str
    text: str
    document: str
    location: dict[str, Any]
    also_in: list[str] = Field(default_factory=list, exclude_if=absent)


class ScoredTriple(Response):
    """A triple the query was linked to; `kept` says whether recognition memory kept it."""

    subject: str
    predicate: str
    object: str
    score: float
    kept: bool


class SeedPhrase(Response):
    phrase: str
    weight: float


class NamedPassage(Response):
    """`document`: the first, by URI, that holds the passage."""

    id: str
    title: str
    document: str


class PhraseShare(Response):
    phrase: str
    share: float


class PassageShare(NamedPassage):
    share: float


class VouchedTriple(Response):
    """A triple, and the passages that state it."""

    subject: str
    predicate: str
    object: str
    passages: list[NamedPassage]


class PathStep(Response):
    """A node, "phrase" or "passage" (then with its id; `text` is its title), and the edge that leads to it from the step
    before: "relation", "synonym" or "context", with its weight and the triples that it stands for."""

    kind: str
    text: str
    id: str | None = Field(default=None, exclude_if=absent)
    edge: str | None = Field(default=None, exclude_if=absent)
    weight: float | None = Field(default=None, exclude_if=absent)
    triples: list[VouchedTriple] = Field(default_factory=list, exclude_if=absent)


class Path(Response):
    """The strongest way from a seed to the passage; `share` of the passage's score went along exactly its edges."""

    share: float
    steps: list[PathStep]


class PassageReason(Response):
    """Why the passage at `rank` is there: its cosine with the query, and which seeds its PageRank came from.

    `own_share` (its own similarity), the shares of `seeds`, and `other_share` (all other passages, the largest of them
    named) sum to 1; they are absent where no walk was made.
    """

    rank: int
    id: str
    similarity: float
    own_share: float | None = Field(default=None, exclude_if=absent)
    seeds: list[PhraseShare] = Field(default_factory=list)
    other_share: float | None = Field(default=None, exclude_if=absent)
    others: list[PassageShare] = Field(default_factory=list, exclude_if=absent)
    path: Path | None = Field(default=None, exclude_if=absent)


class Explanation(OpenResponse):
    """How an answer came about: milliseconds by stage, and a reason for each passage."""

    stages_ms: dict[str, float] = Field(default_factory=dict)
    passages: list[PassageReason] = Field(default_factory=list)


class QueryResponse(Response):
    """`note`: what a user should know about how the answer came about (an empty filter, a fallback)."""

    query: str
    mode: str
    commit: int
    took_ms: float
    passages: list[RankedPassage]
    triples: list[ScoredTriple]
    seeds: list[SeedPhrase]
    explain: Explanation | None = Field(default=None, exclude_if=absent)
    note: str | None = Field(default=None, exclude_if=absent)
