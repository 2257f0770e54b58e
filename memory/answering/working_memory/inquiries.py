"""What a step searches for and finds: concerns, and an inquiry with the results for each concern."""

from dataclasses import dataclass
from typing import Literal

InvestigationKind = Literal["local", "global"]
"""Local investigation is about a point of the memory; global exploration is about entities outside the memory."""


@dataclass(frozen=True, slots=True)
class Concern:
    """A statement of what the memory lacks, and the subquery that searches for it.

    `point` is the id of the point that the concern is about (local investigation); None for global exploration.
    """

    text: str
    subquery: str
    point: str | None = None

    @property
    def kind(self) -> InvestigationKind:
        return "global" if self.point is None else "local"


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """A phrase of the graph and its cosine with the subquery.

    `description` is a sentence about the phrase, and `source` the passage that contains it; both are "" if no sentence was
    found.
    """

    phrase: str
    score: float
    description: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class FoundTriple:
    """A triple that contains a retrieved entity, and its cosine with the subquery; `description` and `source` as in
    `FoundEntity`."""

    subject: str
    predicate: str
    object: str
    score: float
    description: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage that contains a retrieved entity, its cosine with the subquery, and its phrases."""

    id: str
    title: str
    text: str
    score: float
    phrases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A concern and the results retrieved for it, best first.

    `candidates` is the number of candidate phrases (the size of the set of formula 6 or 7). `withheld` contains ids of
    retrieved passages that the prompt omitted because it was too long.
    """

    concern: Concern
    candidates: int
    entities: tuple[FoundEntity, ...] = ()
    triples: tuple[FoundTriple, ...] = ()
    passages: tuple[FoundPassage, ...] = ()
    withheld: tuple[str, ...] = ()
