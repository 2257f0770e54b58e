"""From seeds to scores of passages: the random walk, with passages in it or without."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory.asking import Asked, Floats, Ranking, Walked
from memory.ppr import Settled, pagerank_inside
from memory.ranking import is_ordered
from memory.types import LinkedTriple, Seed
from store.snapshot import Snapshot
from store.walk import EdgeWeights

HIPPORAG2 = EdgeWeights(relation=2.0, synonym=2.0, context=1.0)
"""HippoRAG 2's code adds an edge between phrases in both directions to an undirected graph, where they become parallel,
and a context edge once. Its recall follows from that."""
PHRASES_ONLY = EdgeWeights(relation=1.0, synonym=1.0)


def dense(asked: Asked, triples: Sequence[LinkedTriple] = (), note: str | None = None) -> Ranking:
    """Passages by cosine with the query."""
    return Ranking(asked.similarities, triples=tuple(triples), note=note, is_dense=True)


def walk(
    asked: Asked,
    seeds: Sequence[Seed],
    passages: Floats | None,
    weights: EdgeWeights = HIPPORAG2,
    triples: Sequence[LinkedTriple] = (),
) -> Ranking:
    """Passages by PageRank from `seeds` and from `passages`, reset weights of shape (n_passages,).

    Without `passages` they are no nodes of the graph, and a passage's score is the sum of its phrases' PageRank, each as
    often as it occurs in the passage's triples (HippoRAG, section 2.3). Where nothing is left to start from: dense retrieval.
    """
    snapshot = asked.snapshot
    reset: Floats = np.zeros(snapshot.n_phrases + snapshot.n_passages)
    for seed in seeds:
        reset[seed.row] = seed.weight
    if passages is not None:
        reset[snapshot.n_phrases :] = passages
    if not reset.any():
        return dense(asked, triples, "no seed has any weight: dense retrieval")
    with asked.stage("graph"):
        graph = snapshot.walk(weights if passages is not None else PHRASES_ONLY)
    with asked.stage("walk"):
        settled = _settled(asked) if passages is not None else None
        ranks = pagerank_inside(graph.inside, reset, asked.settings.damping, settled)
        scores = ranks[snapshot.n_phrases :] if passages is not None else by_occurrence(snapshot, ranks)
    walked = Walked(graph, reset, ranks, asked.settings.damping, passages is None)
    return Ranking(scores, triples=tuple(triples), seeds=tuple(seeds), walked=walked)


def _settled(asked: Asked) -> Settled:
    """Whether the best passages and their order are sure. The two scores of a pair are off by the L1 error at most."""
    alive, first = np.flatnonzero(asked.snapshot.passage_alive), asked.snapshot.n_phrases
    return lambda ranks, error: is_ordered(ranks[first:][alive], asked.k, error)


def by_occurrence(snapshot: Snapshot, ranks: NDArray[np.float64]) -> Floats:
    """Each passage's sum over its triples of the ranks of their phrases, shape (n_passages,)."""
    subjects, objects = snapshot.triple_ends.T
    stated = ranks[subjects] + np.where(subjects != objects, ranks[objects], 0.0)
    # Where a passage was taken away, rounding may leave a trace of what it stated.
    return np.maximum(snapshot.incidence.matvec(stated), 0.0)
