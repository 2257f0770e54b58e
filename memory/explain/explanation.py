"""Data classes that explain why a passage was found. Rows refer to the snapshot that answered."""

from dataclasses import dataclass

from store.types import Triple


@dataclass(frozen=True, slots=True)
class StatedTriple:
    """A triple, and the rows of the passages that state it."""

    triple: Triple
    passages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EdgeProvenance:
    """An edge of the graph, and the statements that it comes from. `kind` is "relation", "mention", "synonym" or "context"."""

    kind: str
    weight: float
    """Weight of the edge, without the factor of its kind in a walk."""
    triples: tuple[StatedTriple, ...] = ()


@dataclass(frozen=True, slots=True)
class SeedShare:
    """A seed, by its row in the snapshot, and its share of a passage's score."""

    row: int
    share: float


@dataclass(frozen=True, slots=True)
class PathNode:
    """A phrase or a passage on a path, and the edge that leads to it; None for the seed at the beginning."""

    row: int
    is_passage: bool
    edge: EdgeProvenance | None = None


@dataclass(frozen=True, slots=True)
class StrongestPath:
    """The strongest path from a phrase seed to the passage.

    `share` is the part of the passage's score along exactly its edges.
    """

    share: float
    nodes: tuple[PathNode, ...]


@dataclass(frozen=True, slots=True)
class FollowedLink:
    """A link that led to a passage of the document `target`.

    `source` is the row of the passage with the link, and `document` the document that contains the link. `heading`, the heading
    of the target, and `text`, the link's words, may be empty.
    """

    source: int
    document: str
    target: str
    heading: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class PassageExplanation:
    """Why one passage was found. Shares refer to its score and sum to 1; they are None without a walk."""

    row: int
    similarity: float
    """Cosine with the query; BM25 if passages were compared by words."""
    own_share: float | None = None
    """Share of the passage's own seed, whose weight depends on its similarity to the query."""
    phrase_shares: tuple[SeedShare, ...] = ()
    """Shares of the phrase seeds, the largest first."""
    passage_shares: tuple[SeedShare, ...] = ()
    """The largest shares of other passages' seeds."""
    other_share: float | None = None
    """Share of all other passages' seeds together."""
    path: StrongestPath | None = None
    hub_factor: float = 1.0
    """Share of the score from other nodes that the passage keeps; less than 1 if it is a hub."""
    near_duplicate_of: int | None = None
    """Row of the leader if the passage is a near-duplicate. The shares and the path are then the leader's."""
    link: FollowedLink | None = None
    """The link that gave the passage its score. Shares are then unknown."""
    group_size: int = 1
    """Size of the group of near-duplicates; the leader's score was divided by it."""
