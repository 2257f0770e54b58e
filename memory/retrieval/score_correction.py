"""Corrects the scores of hubs and of near-duplicates after a walk.

A passage that names many things is linked to many phrases, so a walk reaches it whatever the query is: in an undirected graph a
long walk ends at a node with a probability proportional to the node's degree. Andersen, Chung and Lang ("Local Graph
Partitioning using PageRank Vectors", 2006) therefore rank nodes by PageRank divided by degree, which changes every score. Here,
only passages with a degree far above the mean lose rank, and only rank that they receive from other nodes: a table of many
things keeps its place if its own words or its own vector match the query.

A near-duplicate that is left out of the walk (`memory.retrieval.distinct_candidates`) gets a share of its leader's score.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.passage_weights import Floats, PassageWeights

HUB_DEGREE = 2.5
"""A passage is a hub if its weighted degree exceeds this multiple of the mean degree of passages. A degree is twice the number
of triples that the passage states; a triple with one phrase as subject and object counts once."""
HUB_POWER = 6.0
"""Exponent of (limit / degree): the share of the rank received from other nodes that a hub keeps."""


@dataclass(frozen=True, slots=True)
class ScoreCorrection:
    """The correction of passages' scores in one walk."""

    hub_degree: float
    """Largest degree of a passage that is not a hub."""
    own: PassageWeights
    """Rank that passages have as starts, before any step of the walk."""
    leaders: Mapping[int, int]
    """Leader of each near-duplicate that does not take part in the walk, by row."""

    def scores(self, rows: NDArray[Any], ranks: Floats, degrees: Floats) -> tuple[Floats, PassageWeights]:
        """Returns the scores of the passages `rows`, and those of all near-duplicates.

        `ranks` and weighted `degrees` are those of `rows`, which include the leaders. No score exceeds its rank.
        """
        own = np.minimum(self.own.of(rows), ranks)
        scores: Floats = own + self.hub_factors(degrees) * (ranks - own)
        return scores, self._duplicates(rows, scores)

    def hub_factors(self, degrees: Floats) -> Floats:
        """Returns the share of the rank received from other nodes that passages with these degrees keep."""
        above = degrees > self.hub_degree
        return np.power(np.divide(self.hub_degree, degrees, out=np.ones(len(degrees)), where=above), HUB_POWER)

    def group_size(self, leader: int) -> int:
        """Returns the number of passages in the leader's group, including the leader."""
        return 1 + sum(each == leader for each in self.leaders.values())

    def _duplicates(self, rows: NDArray[Any], scores: Floats) -> PassageWeights:
        if not self.leaders:
            return PassageWeights(np.empty(0, np.int64), np.empty(0))
        sizes = Counter(self.leaders.values())
        order = np.argsort(rows)
        known = PassageWeights(rows[order], scores[order])
        copies = np.array(sorted(self.leaders), np.int64)
        first = np.array([self.leaders[row] for row in copies.tolist()], np.int64)
        return PassageWeights(copies, known.of(first) / np.array([sizes[row] + 1 for row in first.tolist()]))
