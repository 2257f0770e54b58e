"""Why a passage was found, as it travels: rows are those of the snapshot that answered."""

from dataclasses import dataclass

from store.types import Triple


@dataclass(frozen=True, slots=True)
class Vouched:
    """A triple, and the rows of the passages that state it."""

    triple: Triple
    passages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """`kind` is "relation", "synonym" or "context", `weight` that of the edge itself, `triples` what it stands for."""

    kind: str
    weight: float
    triples: tuple[Vouched, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """A seed, by its row in the snapshot, and which part of a passage's score came from it."""

    row: int
    share: float


@dataclass(frozen=True, slots=True)
class Step:
    """A node on a way: a passage, or a phrase; and the edge that leads to it, None for the seed."""

    row: int
    is_passage: bool
    edge: Edge | None = None


@dataclass(frozen=True, slots=True)
class Way:
    """From a phrase seed to the passage. `share`: which part of the passage's score went along exactly these edges."""

    share: float
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one passage was found. Shares are of its score and sum to 1; they are None where no walk was made."""

    row: int
    similarity: float
    own: float | None = None
    """Share of its own seed: its similarity to the query."""
    phrases: tuple[Share, ...] = ()
    """Shares of the phrase seeds, largest first."""
    passages: tuple[Share, ...] = ()
    """The largest shares of other passages' seeds."""
    others: float | None = None
    """Share of all other passages' seeds together."""
    way: Way | None = None
