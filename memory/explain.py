"""Why a passage was found: what its PageRank is made of, and the strongest way that leads to it.

PageRank is linear in the reset weights r: score(p) = Σₛ r(s) z(s), where z(s) is what one unit at s brings to p. All of z
comes from one further walk, from p: with A symmetric and M = (1 - d)(I - d A D⁻¹)⁻¹, the matrix M D is symmetric, hence
Mᵀ c = D⁻¹ M (D c).

A score is also a sum over ways from a seed, each worth (1 - d) r(s) times the product of d A(u, v) / D(u) over its edges;
`memory.ways` finds the strongest.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory.asking import Asked, Floats, Ranking, Walked
from memory.edges import between, held
from memory.ppr import pagerank_inside
from memory.ranking import cosines
from memory.reasons import Reason, Share, Step, Way
from memory.ways import Ways
from store.snapshot import Snapshot

MOST_PASSAGES = 5
"""Other passages named that a score came from."""


def explain(asked: Asked, ranking: Ranking, rows: Sequence[int]) -> tuple[Reason, ...]:
    """One reason for each of the passages `rows`. Costs a walk a passage and a search over the nodes of most PageRank."""
    similar = cosines(asked.snapshot.passage_vectors, asked.vector, np.array(rows, np.int64))
    if ranking.walked is None:
        return tuple(Reason(row, float(each)) for row, each in zip(rows, similar, strict=True))
    ways = Ways(asked.snapshot, ranking.walked)
    return tuple(
        _reason(asked.snapshot, ranking.walked, ways, row, float(each)) for row, each in zip(rows, similar, strict=True)
    )


def _reason(snapshot: Snapshot, walked: Walked, ways: Ways, row: int, similarity: float) -> Reason:
    first = snapshot.n_phrases
    target = passage_target(snapshot, walked, row)
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
        _way(snapshot, walked, ways.to(target, score), row),
    )


def passage_target(snapshot: Snapshot, walked: Walked, row: int) -> Floats:
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
        ranks = pagerank_inside(walked.walk.inside, mass, walked.damping)
        out[linked] = mass.sum() * ranks[linked] / degrees[linked]
    return out


def _largest(shares: NDArray[np.float64], most: int) -> tuple[Share, ...]:
    rows = np.flatnonzero(shares > 0)
    rows = rows[np.argsort(-shares[rows], kind="stable")][:most]
    return tuple(Share(int(row), float(shares[row])) for row in rows)


def _way(snapshot: Snapshot, walked: Walked, found: tuple[float, list[int]] | None, row: int) -> Way | None:
    """What `Ways.to` found for a passage, with the edges along it."""
    if found is None:
        return None
    share, nodes = found
    steps = [_step(snapshot, node, before) for node, before in zip(nodes, [None, *nodes[:-1]], strict=True)]
    if walked.through_phrases:
        steps.append(Step(row, True, held(snapshot, nodes[-1], row)))
    return Way(share, tuple(steps))


def _step(snapshot: Snapshot, node: int, before: int | None) -> Step:
    first = snapshot.n_phrases
    row, is_passage = (node - first, True) if node >= first else (node, False)
    if before is None:
        return Step(row, is_passage)
    if is_passage:
        return Step(row, True, held(snapshot, before, row))
    if before >= first:
        return Step(row, False, held(snapshot, node, before - first))
    return Step(row, False, between(snapshot, before, node))
