"""Why a passage was found: what its PageRank is made of, and the strongest way that leads to it.

PageRank is linear in the reset weights r: score(p) = Σₛ r(s) z(s), where z(s) is what one unit at s brings to p. All of z
comes from one further walk, from p: with A symmetric and M = (1 - d)(I - d A D⁻¹)⁻¹, the matrix M D is symmetric, hence
Mᵀ c = D⁻¹ M (D c).

A score is also a sum over ways from a seed, each worth (1 - d) r(s) times the product of d A(u, v) / D(u) over its edges; the
strongest is a shortest path with the negative logarithms as lengths.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from memory.asking import Asked, Floats, Ranking, Walked
from memory.edges import between, held
from memory.ppr import pagerank
from memory.ranking import cosines
from memory.reasons import Reason, Share, Step, Way
from store.snapshot import Snapshot

MOST_PASSAGES = 5
"""Other passages named that a score came from."""


def explain(asked: Asked, ranking: Ranking, rows: Sequence[int]) -> tuple[Reason, ...]:
    """One reason for each of the passages `rows`. Costs a walk a passage and one search over the graph."""
    similar = cosines(asked.snapshot.passage_vectors, asked.vector, np.array(rows, np.int64))
    if ranking.walked is None:
        return tuple(Reason(row, float(each)) for row, each in zip(rows, similar, strict=True))
    ways = _Ways(asked.snapshot, ranking.walked)
    return tuple(
        _reason(asked.snapshot, ranking.walked, ways, row, float(each)) for row, each in zip(rows, similar, strict=True)
    )


def _reason(snapshot: Snapshot, walked: Walked, ways: "_Ways", row: int, similarity: float) -> Reason:
    first = snapshot.n_phrases
    target = _target(snapshot, walked, row)
    brought = walked.reset * influence(walked, target)
    score = float(brought.sum())
    if score <= 0.0:
        return Reason(row, similarity, 0.0, others=0.0)
    shares = brought / score
    from_phrases, from_passages = shares[:first], shares[first:].copy()
    own = float(from_passages[row])
    from_passages[row] = 0.0
    return Reason(
        row,
        similarity,
        own,
        _largest(from_phrases, len(from_phrases)),
        _largest(from_passages, MOST_PASSAGES),
        float(from_passages.sum()),
        ways.to(row, target, score),
    )


def _target(snapshot: Snapshot, walked: Walked, row: int) -> Floats:
    """How a passage's score is made of the nodes' ranks, shape (nodes,)."""
    target: Floats = np.zeros(walked.walk.nodes)
    if not walked.through_phrases:
        target[snapshot.n_phrases + row] = 1.0
        return target
    _, triples, _ = snapshot.incidence.entries(np.array([row]))
    subjects, objects = snapshot.triple_ends[triples].T
    np.add.at(target, subjects, 1.0)
    np.add.at(target, objects[objects != subjects], 1.0)
    return target


def influence(walked: Walked, target: Floats) -> Floats:
    """What a unit of reset weight at each node brings to Σ target · rank, shape (nodes,)."""
    degrees = walked.walk.degrees
    mass = target * degrees
    out: Floats = (1.0 - walked.damping) * target
    if mass.any():
        linked = degrees > 0
        ranks = pagerank(walked.walk, degrees, mass, walked.damping)
        out[linked] = mass.sum() * ranks[linked] / degrees[linked]
    return out


def _largest(shares: NDArray[np.float64], most: int) -> tuple[Share, ...]:
    rows = np.flatnonzero(shares > 0)
    rows = rows[np.argsort(-shares[rows], kind="stable")][:most]
    return tuple(Share(int(row), float(shares[row])) for row in rows)


class _Ways:
    """The strongest way from any phrase seed to each node: one search for all passages of an answer."""

    def __init__(self, snapshot: Snapshot, walked: Walked) -> None:
        self._snapshot = snapshot
        self._walked = walked
        seeds = np.flatnonzero(walked.reset[: snapshot.n_phrases] > 0)
        self._lengths: Floats = np.full(walked.walk.nodes, np.inf)
        self._before: NDArray[Any] = np.full(walked.walk.nodes, -1)
        if len(seeds):
            self._search(seeds)

    def _search(self, seeds: NDArray[Any]) -> None:
        walked, nodes = self._walked, self._walked.walk.nodes
        edges = walked.walk.merged().tocoo()
        # A node before all others leads to the seeds. Lengths must not be 0, which would be no edge.
        begin = -np.log(walked.reset[seeds] / walked.reset[seeds].max()) + 1.0
        lengths = np.concatenate([-np.log(walked.damping * edges.data / walked.walk.degrees[edges.row]), begin])
        rows = np.concatenate([edges.row, np.full(len(seeds), nodes)])
        cols = np.concatenate([edges.col, seeds])
        graph = sparse.csr_array((lengths, (rows, cols)), shape=(nodes + 1, nodes + 1))
        found, before = dijkstra(graph, indices=nodes, return_predecessors=True)
        self._lengths = found[:-1] - 1.0 - np.log(walked.reset[seeds].max())
        self._before = np.where(before[:-1] == nodes, -1, before[:-1])

    def to(self, row: int, target: Floats, score: float) -> Way | None:
        """The strongest way to a passage, None where no phrase seed leads there."""
        ends = np.flatnonzero(target)
        if not len(ends):
            return None
        lengths = self._lengths[ends] - np.log(target[ends])
        best = int(np.argmin(lengths))
        if not np.isfinite(lengths[best]):
            return None
        nodes = [int(ends[best])]
        while (before := int(self._before[nodes[-1]])) >= 0:
            nodes.append(before)
        steps = [self._step(node, before) for node, before in zip(nodes, [*nodes[1:], None], strict=True)]
        steps.reverse()
        if self._walked.through_phrases:
            steps.append(Step(row, True, held(self._snapshot, nodes[0], row)))
        return Way(float((1.0 - self._walked.damping) * np.exp(-lengths[best]) / score), tuple(steps))

    def _step(self, node: int, before: int | None) -> Step:
        first = self._snapshot.n_phrases
        row, is_passage = (node - first, True) if node >= first else (node, False)
        if before is None:
            return Step(row, is_passage)
        if is_passage:
            return Step(row, True, held(self._snapshot, before, row))
        if before >= first:
            return Step(row, False, held(self._snapshot, node, before - first))
        return Step(row, False, between(self._snapshot, before, node))
