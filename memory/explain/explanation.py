"""Why a passage was found, as plain data. Rows are those of the snapshot that answered."""

from dataclasses import dataclass

from store.types import Triple


@dataclass(frozen=True, slots=True)
class StatedTriple:
    """A triple, and the rows of the passages that state it."""

    triple: Triple
    passages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EdgeProvenance:
    """An edge of the graph and the statements that it comes from. `kind` is "relation", "mention", "synonym" or "context"."""

    kind: str
    weight: float
    """The edge's own weight, without the factor of its kind in a walk."""
    triples: tuple[StatedTriple, ...] = ()


@dataclass(frozen=True, slots=True)
class SeedShare:
    """A seed, by its row in the snapshot, and the share of a passage's score that came from it."""

    row: int
    share: float


@dataclass(frozen=True, slots=True)
class PathNode:
    """A phrase or a passage on a path, and the edge that leads to it; None for the seed, where the path begins."""

    row: int
    is_passage: bool
    edge: EdgeProvenance | None = None


@dataclass(frozen=True, slots=True)
class StrongestPath:
    """The strongest path from a phrase seed to the passage. `share` of the passage's score came along exactly its edges."""

    share: float
    nodes: tuple[PathNode, ...]


@dataclass(frozen=True, slots=True)
class FollowedLink:
    """A link that led to a passage of the document `target`: the row of the passage with the link, the document that has it
    there, and the heading that it names and the words that it shows, which may be empty."""

    source: int
    document: str
    target: str
    heading: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class PassageExplanation:
    """Why one passage was found. Shares are of its score and sum to 1; they are None where no walk was made."""

    row: int
    similarity: float
    """Cosine with the query."""
    own_share: float | None = None
    """Share of the passage's own seed, which its similarity to the query decides."""
    phrase_shares: tuple[SeedShare, ...] = ()
    """Shares of the phrase seeds, largest first."""
    passage_shares: tuple[SeedShare, ...] = ()
    """The largest shares of other passages' seeds."""
    other_share: float | None = None
    """Share of all other passages' seeds together."""
    path: StrongestPath | None = None
    hub_factor: float = 1.0
    """What the passage keeps of its score from other nodes: less than 1 if it is damped as a hub."""
    near_duplicate_of: int | None = None
    """The row of the leader if the passage is a near-duplicate. The shares and the path are then those of the leader."""
    link: FollowedLink | None = None
    """The link that the passage owes its score to. Then no share is known."""
    group_size: int = 1
    """The leader's score was divided by this number of near-duplicates."""
