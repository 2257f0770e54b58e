"""Explains a passage's score: the seeds that contribute to its PageRank, and the strongest path to it.

PageRank is linear in the reset weights r: score(p) = Σₛ r(s) z(s), where z(s) is the contribution to p of one unit of weight at
s. One walk from p computes all of z: with A symmetric and M = (1 - d)(I - d A D⁻¹)⁻¹, the matrix M D is symmetric, hence Mᵀ c =
D⁻¹ M (D c).

A score is also a sum over all paths from a seed. A path contributes (1 - d) r(s) times the product of d A(u, v) / D(u) over its
edges; `memory.explain.strongest_path` finds the path that contributes most. The explanation names, for each edge of this path,
its triples and the passages that state them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.explain.explanation import (
    EdgeProvenance,
    PassageExplanation,
    PathNode,
    SeedShare,
    StatedTriple,
    StrongestPath,
)
from memory.explain.strongest_path import StrongestPathSearch
from memory.retrieval.mode_result import Ranking
from memory.retrieval.pagerank.chebyshev import pagerank_reordered
from memory.retrieval.pagerank.push import ForwardPush
from memory.retrieval.pagerank.walk import PUSH_MAX_WORK, PageRankResult
from memory.retrieval.passage_weights import Floats
from memory.retrieval.query_context import QueryContext
from memory.retrieval.top_k import cosines
from store.index.delta_csr import MatrixView
from store.snapshot import Snapshot

INFLUENCE_EPSILON = 1e-8
"""Epsilon of `memory.retrieval.pagerank.push`. The contribution of one unit of weight at a node is then too low by at most this
value times half the passage's degree, so the seed that contributes most is listed first."""
NAMED_PASSAGES = 5
"""Maximum number of other passages listed as seeds of a passage's score."""


def explain(context: QueryContext, ranking: Ranking, rows: Sequence[int]) -> tuple[PassageExplanation, ...]:
    """Returns one explanation for each passage of `rows`.

    Costs one walk per passage, and a search over the nodes with the highest PageRank.
    """
    chosen = np.array(rows, np.int64)
    if context.passages_by_words:
        similarities = context.similarities[chosen].astype(np.float64).tolist()
    else:
        similarities = cosines(context.snapshot.passage_vectors, context.vector, chosen).tolist()
    if ranking.pagerank is None:
        return tuple(PassageExplanation(row, similarity) for row, similarity in zip(rows, similarities, strict=True))
    search = StrongestPathSearch(context.snapshot, ranking.pagerank)
    return tuple(
        PassageExplanation(row, similarity, link=ranking.links[row])
        if row in ranking.links
        else _explanation(context.snapshot, ranking.pagerank, search, row, similarity)
        for row, similarity in zip(rows, similarities, strict=True)
    )


def _explanation(
    snapshot: Snapshot, pagerank: PageRankResult, search: StrongestPathSearch, row: int, similarity: float
) -> PassageExplanation:
    walk = pagerank.walk
    if walk.correction is not None and (leader := walk.correction.leaders.get(row)) is not None:
        found = _explanation(snapshot, pagerank, search, leader, similarity)
        return replace(found, row=row, near_duplicate_of=leader, group_size=walk.correction.group_size(leader))
    first = snapshot.n_phrases
    target = passage_target(snapshot, pagerank, row)
    contributions = walk.reset * influence(pagerank, target)
    uncorrected = float(contributions.sum())
    if uncorrected <= 0.0:
        return PassageExplanation(row, similarity, 0.0, other_share=0.0)
    factor = 1.0
    if walk.correction is not None:
        factor = float(walk.correction.hub_factors(walk.graph.degrees[first + row : first + row + 1])[0])
        own_start = (1.0 - walk.damping) * walk.reset[first + row]
        contributions *= factor
        contributions[first + row] += (1.0 - factor) * own_start
    score = float(contributions.sum())
    shares = contributions / score
    from_phrases, from_passages = shares[:first], shares[first:].copy()
    own = float(from_passages[row])
    from_passages[row] = 0.0
    return PassageExplanation(
        row,
        similarity,
        own,
        _largest(from_phrases, len(from_phrases)),
        _largest(from_passages, NAMED_PASSAGES),
        float(from_passages.sum()),
        _path(snapshot, pagerank, search.to(target, uncorrected), row, factor * uncorrected / score),
        factor,
    )


def passage_target(snapshot: Snapshot, pagerank: PageRankResult, row: int) -> Floats:
    """Returns the nodes' weights in the passage's score, shape (nodes,): the score is Σ weight · rank."""
    target: Floats = np.zeros(pagerank.walk.graph.nodes)
    if not pagerank.walk.through_phrases:
        target[snapshot.n_phrases + row] = 1.0
        return target
    _, triples, _ = snapshot.incidence.entries(np.array([row]))
    subjects, objects = snapshot.triple_ends[triples].T
    np.add.at(target, subjects, 1.0)
    np.add.at(target, objects[objects != subjects], 1.0)
    return target


def influence(pagerank: PageRankResult, target: Floats) -> Floats:
    """Returns how much one unit of reset weight at each node contributes to Σ target · rank, shape (nodes,)."""
    degrees = pagerank.walk.graph.degrees
    mass = target * degrees
    out: Floats = (1.0 - pagerank.walk.damping) * target
    if mass.any():
        linked = degrees > 0
        ranks = _ranks_from(pagerank, mass)
        out[linked] = mass.sum() * ranks[linked] / degrees[linked]
    return out


def _ranks_from(pagerank: PageRankResult, reset: Floats) -> Floats:
    """Returns the PageRank for the reset weights `reset`, shape (nodes,), which are zero for most nodes.

    Uses forward push if the explained walk used it.
    """
    inside = pagerank.walk.graph.inside
    if pagerank.was_pushed:
        starts = np.flatnonzero(reset)
        with ForwardPush(inside, inside.inner(starts), reset[starts], pagerank.walk.damping) as push:
            found = push.refine(INFLUENCE_EPSILON, PUSH_MAX_WORK * inside.total_degree)
        if found is not None:
            ranks: Floats = np.zeros(len(reset))
            ranks[inside.outer(found.nodes)] = found.ranks
            return ranks
    return pagerank_reordered(inside, reset, pagerank.walk.damping)


def _largest(shares: NDArray[np.float64], count: int) -> tuple[SeedShare, ...]:
    rows = np.flatnonzero(shares > 0)
    rows = rows[np.argsort(-shares[rows], kind="stable")][:count]
    return tuple(SeedShare(int(row), float(shares[row])) for row in rows)


def _path(
    snapshot: Snapshot,
    pagerank: PageRankResult,
    found: tuple[float, list[int]] | None,
    row: int,
    kept: float,
) -> StrongestPath | None:
    """Converts a path of `StrongestPathSearch.to` to its nodes and edges, and multiplies its share by `kept`."""
    if found is None:
        return None
    share, nodes = found[0] * kept, found[1]
    path = [_path_node(snapshot, node, before) for node, before in zip(nodes, [None, *nodes[:-1]], strict=True)]
    if pagerank.walk.through_phrases:
        path.append(PathNode(row, True, context_edge(snapshot, nodes[-1], row)))
    return StrongestPath(share, tuple(path))


def _path_node(snapshot: Snapshot, node: int, before: int | None) -> PathNode:
    first = snapshot.n_phrases
    row, is_passage = (node - first, True) if node >= first else (node, False)
    if before is None:
        return PathNode(row, is_passage)
    if is_passage:
        return PathNode(row, True, context_edge(snapshot, before, row))
    if before >= first:
        return PathNode(row, False, context_edge(snapshot, node, before - first))
    return PathNode(row, False, phrase_edge(snapshot, before, node))


def phrase_edge(snapshot: Snapshot, a: int, b: int) -> EdgeProvenance:
    """Returns the relation edge of two phrases; if there is none, their mention edge; otherwise their synonym edge."""
    weight = _entry(snapshot.relation, a, b)
    if not weight:
        mentioned = _entry(snapshot.mention, a, b)
        return EdgeProvenance("mention", mentioned) if mentioned else _synonym_edge(snapshot, a, b)
    ends = snapshot.triple_ends
    links = ((ends[:, 0] == a) & (ends[:, 1] == b)) | ((ends[:, 0] == b) & (ends[:, 1] == a))
    return EdgeProvenance(
        "relation", weight, stated_triples(snapshot, np.flatnonzero(links & snapshot.statement_alive))
    )


def _synonym_edge(snapshot: Snapshot, a: int, b: int) -> EdgeProvenance:
    return EdgeProvenance("synonym", _entry(snapshot.synonym, a, b))


def context_edge(snapshot: Snapshot, phrase: int, passage: int) -> EdgeProvenance:
    _, triples, _ = snapshot.incidence.entries(np.array([passage]))
    about = (snapshot.triple_ends[triples] == phrase).any(axis=1) & snapshot.is_statement[triples]
    return EdgeProvenance(
        "context",
        1.0,
        tuple(StatedTriple(snapshot.triple(int(row)), (passage,)) for row in sorted(triples[about])),
    )


def stated_triples(snapshot: Snapshot, triples: NDArray[Any] | Sequence[int]) -> tuple[StatedTriple, ...]:
    return tuple(
        StatedTriple(snapshot.triple(row), tuple(passages))
        for row, passages in snapshot.passages_of(np.asarray(triples)).items()
    )


def _entry(view: MatrixView, row: int, column: int) -> float:
    columns, values = view.row(row)
    at = np.flatnonzero(columns == column)
    return float(values[at[0]]) if len(at) else 0.0
