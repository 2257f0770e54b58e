"""Data classes that explain why a passage was found. Rows refer to the snapshot of the query."""

from dataclasses import dataclass

from store.types import Triple


@dataclass(frozen=True, slots=True)
class StatedTriple:
    """A triple, and the rows of the passages that state it."""

    triple: Triple
    passages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EdgeProvenance:
    """An edge of the graph, and the statements that it is made of. `kind` is "relation", "mention", "synonym" or "context"."""

    kind: str
    weight: float
    """Weight without the factor that a walk uses for edges of this kind."""
    triples: tuple[StatedTriple, ...] = ()


@dataclass(frozen=True, slots=True)
class SeedShare:
    """A seed, by its row in the snapshot, and its share of a passage's score."""

    row: int
    share: float


@dataclass(frozen=True, slots=True)
class PathNode:
    """A phrase or passage on a path, and the edge to it; the seed has none."""

    row: int
    is_passage: bool
    edge: EdgeProvenance | None = None


@dataclass(frozen=True, slots=True)
class StrongestPath:
    """The strongest path from a phrase seed to the passage.

    `share` is the share of the score that flows along exactly this path.
    """

    share: float
    nodes: tuple[PathNode, ...]


@dataclass(frozen=True, slots=True)
class FollowedLink:
    """A link that led to a passage of the document `target`.

    `source` is the row of the passage with the link, `document` its document. `heading` (the target's) and `text` (the link's)
    may be "".
    """

    source: int
    document: str
    target: str
    heading: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class PassageExplanation:
    """Shares refer to the passage's score and sum to 1; they are None without a walk."""

    row: int
    similarity: float
    """Cosine with the query; BM25 if passages were compared by words."""
    own_share: float | None = None
    """Share of the passage's own seed, whose weight depends on the similarity to the query."""
    phrase_shares: tuple[SeedShare, ...] = ()
    """Shares of the phrase seeds, largest first."""
    passage_shares: tuple[SeedShare, ...] = ()
    """The largest shares of other passages' seeds."""
    other_share: float | None = None
    """Sum of the shares of all other passages' seeds."""
    path: StrongestPath | None = None
    hub_factor: float = 1.0
    """Factor of the score that comes from other nodes; less than 1 if the passage is a hub."""
    near_duplicate_of: int | None = None
    """Row of the leader, if the passage is a near-duplicate that was left out. Shares and path are then the leader's."""
    link: FollowedLink | None = None
    """The link that led to the passage, if its score comes from a link. The shares are then unknown."""
    group_size: int = 1
    """Size of the group of near-duplicates. The leader's score was divided by this number."""
