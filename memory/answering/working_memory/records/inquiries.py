"""What a step looks for, and what it finds: concerns, and the inquiry that retrieves for each."""

from dataclasses import dataclass
from typing import Literal

InvestigationKind = Literal["local", "global"]
"""Local investigation is about a point of the memory, global exploration about anything beyond the memory."""


@dataclass(frozen=True, slots=True)
class Concern:
    """What the memory lacks, and the one subquery that is asked for it.

    `point` is the id of the point that it is about (local investigation), None beyond the memory (global exploration).
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

    `description` is a sentence that tells of it, from the passage `source`; both are "" where none was found.
    """

    phrase: str
    score: float
    description: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class FoundTriple:
    """A triple about a retrieved entity and its cosine with the subquery; `description` and `source` as of an entity."""

    subject: str
    predicate: str
    object: str
    score: float
    description: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage that contains a retrieved entity, its cosine with the subquery, and the phrases in it."""

    id: str
    title: str
    text: str
    score: float
    phrases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One concern and what was retrieved for it, best first.

    `candidates`: how many phrases could be retrieved (the size of the set of formula 6 or 7). `withheld`: ids of retrieved
    passages that the model was not shown because the prompt was too long for it.
    """

    concern: Concern
    candidates: int
    entities: tuple[FoundEntity, ...] = ()
    triples: tuple[FoundTriple, ...] = ()
    passages: tuple[FoundPassage, ...] = ()
    withheld: tuple[str, ...] = ()
