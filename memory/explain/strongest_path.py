"""Finds the strongest path from a phrase seed to a passage: the shortest path if an edge has the length -log(d A(u, v) / D(u)).

A node's PageRank is a sum over all paths to it, and no factor of a path exceeds 1. So each node on a path has at least the
PageRank that the path contributes. A path is therefore the strongest of all if it contributes more than the PageRank of every
node outside the search. A search of a few thousand nodes nearly always suffices, whatever the size of the graph.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from memory.retrieval.pagerank.walk import PageRankResult
from memory.retrieval.passage_weights import Floats
from store.snapshot import Snapshot

FIRST_SEARCH_NODES = 2_048
"""Number of nodes in the first search, which covers the nodes with the highest PageRank."""
SEARCH_GROWTH_FACTOR = 64
"""Factor by which the number of nodes grows in each further search."""


class StrongestPathSearch:
    def __init__(self, snapshot: Snapshot, pagerank: PageRankResult) -> None:
        self._phrases = snapshot.n_phrases
        self._pagerank = pagerank
        self._seeds = np.flatnonzero(pagerank.walk.reset[: snapshot.n_phrases] > 0)
        self._whole = float(pagerank.walk.reset.sum())
        self._searched = 0
        self._beyond = np.inf
        """Upper bound of the PageRank of nodes outside the search."""
        self._nodes: NDArray[np.int64] = np.empty(0, np.int64)
        self._lengths: Floats = np.empty(0)
        self._before: NDArray[Any] = np.empty(0, np.int64)

    def to(self, target: Floats, score: float, min_share: float = 0.0) -> tuple[float, list[int]] | None:
        """Returns the share of a passage's score along its strongest path, and the nodes of the path, seed first.

        `target`, shape (nodes,), contains the nodes' weights in the score, which is Σ target · rank; `score` is Σ reset ·
        influence. If passages are not nodes of the walk, the path ends at the phrase before the passage. Returns None if no
        phrase seed leads to the passage, or if the share is below `min_share`, which needs no complete search.
        """
        ends = np.flatnonzero(target)
        if not len(ends) or not len(self._seeds):
            return None
        while True:
            best, length = self._best(ends, target)
            worth = (1.0 - self._pagerank.walk.damping) * np.exp(-length)
            beyond = self._beyond * self._whole * target.max()
            if worth >= beyond or beyond < min_share * score:
                break
            self._search(self._searched * SEARCH_GROWTH_FACTOR or FIRST_SEARCH_NODES)
        if best is None or worth < min_share * score:
            return None
        return float(worth / score), self._back(best)

    def _best(self, ends: NDArray[Any], target: Floats) -> tuple[int | None, float]:
        """Returns the index of the strongest path's last node, and the path's length including that node's weight in the
        score."""
        if not len(self._nodes):
            return None, np.inf
        at = np.searchsorted(self._nodes, ends)
        present = (at < len(self._nodes)) & (self._nodes[np.minimum(at, len(self._nodes) - 1)] == ends)
        if not present.any():
            return None, np.inf
        lengths = self._lengths[at[present]] - np.log(target[ends[present]])
        best = int(np.argmin(lengths))
        return (int(at[present][best]), float(lengths[best])) if np.isfinite(lengths[best]) else (None, np.inf)

    def _search(self, count: int) -> None:
        pagerank, ranks = self._pagerank, self._pagerank.rank_bounds
        if count < len(ranks):
            nodes = np.union1d(np.argpartition(ranks, -count)[-count:], self._seeds)
            self._beyond = float(np.partition(ranks, -count)[-count])
            edges = pagerank.walk.graph.among(nodes).tocoo()
        else:
            nodes = np.arange(len(ranks))
            self._beyond = 0.0
            edges = pagerank.walk.graph.merged().tocoo()
        seeds = np.searchsorted(nodes, self._seeds)
        resets = pagerank.walk.reset[self._seeds]
        # An extra node has edges to all seeds. Their lengths are increased by 1, because a sparse matrix drops edges of length
        # 0.
        begin = -np.log(resets / resets.max()) + 1.0
        lengths = np.concatenate(
            [-np.log(pagerank.walk.damping * edges.data / pagerank.walk.graph.degrees[nodes[edges.row]]), begin]
        )
        first = len(nodes)
        rows = np.concatenate([edges.row, np.full(len(seeds), first)])
        cols = np.concatenate([edges.col, seeds])
        graph = sparse.csr_array((lengths, (rows, cols)), shape=(first + 1, first + 1))
        found, before = dijkstra(graph, indices=first, return_predecessors=True)
        self._searched, self._nodes = count, nodes
        self._lengths = found[:-1] - 1.0 - np.log(resets.max())
        self._before = np.where(before[:-1] == first, -1, before[:-1])

    def _back(self, end: int) -> list[int]:
        at = [end]
        while (before := int(self._before[at[-1]])) >= 0:
            at.append(before)
        return [int(self._nodes[each]) for each in reversed(at)]
