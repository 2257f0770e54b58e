"""The strongest way from a phrase seed to a passage: a shortest path, with -log(d A(u, v) / D(u)) as an edge's length.

A node's PageRank is a sum over all ways to it, and no factor of a way is above 1. So no node on a way has less PageRank
than the whole way is worth, and a way that is worth more than any node left out of the search is the strongest of all:
nearly always a few thousand nodes are enough, whatever the size of the graph.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from memory.asking import Floats, Walked
from memory.ppr import GOOD_ENOUGH
from store.snapshot import Snapshot

FIRST = 2_048
GROWTH = 64
"""Nodes of the first search, those of most PageRank, and how many times as many the next one has."""


class Ways:
    """The strongest ways from any phrase seed, for all passages of an answer."""

    def __init__(self, snapshot: Snapshot, walked: Walked) -> None:
        self._phrases = snapshot.n_phrases
        self._walked = walked
        self._seeds = np.flatnonzero(walked.reset[: snapshot.n_phrases] > 0)
        self._whole = float(walked.reset.sum())
        self._searched = 0
        self._beyond = np.inf
        """No node that was left out has more PageRank than this."""
        self._nodes: NDArray[np.int64] = np.empty(0, np.int64)
        self._lengths: Floats = np.empty(0)
        self._before: NDArray[Any] = np.empty(0, np.int64)

    def to(self, target: Floats, score: float, least: float = 0.0) -> tuple[float, list[int]] | None:
        """Which part of a passage's score came along its strongest way, and the nodes on it, seed first.

        `target` says how a score is made of the nodes' ranks, shape (nodes,); `score` is Σ reset · influence. Where the walk
        has no passages, the way ends at the phrase before the passage. None where no phrase seed leads there, or where the
        strongest way's part is below `least`: that is known sooner than which way it is.
        """
        ends = np.flatnonzero(target)
        if not len(ends) or not len(self._seeds):
            return None
        while True:
            best, length = self._best(ends, target)
            worth = (1.0 - self._walked.damping) * np.exp(-length)
            beyond = self._beyond * self._whole * target.max()
            if worth >= beyond or beyond < least * score:
                break
            self._search(self._searched * GROWTH or FIRST)
        if best is None or worth < least * score:
            return None
        return float(worth / score), self._back(best)

    def _best(self, ends: NDArray[Any], target: Floats) -> tuple[int | None, float]:
        """Where among the searched nodes the strongest way ends, and its length with what the end counts in the score."""
        if not len(self._nodes):
            return None, np.inf
        at = np.searchsorted(self._nodes, ends)
        there = (at < len(self._nodes)) & (self._nodes[np.minimum(at, len(self._nodes) - 1)] == ends)
        if not there.any():
            return None, np.inf
        lengths = self._lengths[at[there]] - np.log(target[ends[there]])
        best = int(np.argmin(lengths))
        return (int(at[there][best]), float(lengths[best])) if np.isfinite(lengths[best]) else (None, np.inf)

    def _search(self, count: int) -> None:
        walked, ranks = self._walked, self._walked.ranks
        if count < len(ranks):
            nodes = np.union1d(np.argpartition(ranks, -count)[-count:], self._seeds)
            # Ranks may be off by what a query puts up with.
            self._beyond = float(np.partition(ranks, -count)[-count]) + GOOD_ENOUGH
            edges = walked.walk.among(nodes).tocoo()
        else:
            nodes = np.arange(len(ranks))
            self._beyond = 0.0
            edges = walked.walk.merged().tocoo()
        seeds = np.searchsorted(nodes, self._seeds)
        resets = walked.reset[self._seeds]
        # A node before all others leads to the seeds. Lengths must not be 0, which would be no edge.
        begin = -np.log(resets / resets.max()) + 1.0
        lengths = np.concatenate([-np.log(walked.damping * edges.data / walked.walk.degrees[nodes[edges.row]]), begin])
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
