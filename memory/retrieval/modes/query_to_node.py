"""Query to node: HippoRAG 2 with the phrases nearest to the query as seeds (paper, Table 4)."""

from memory.retrieval.linking.phrases import link_phrases
from memory.retrieval.mode_result import Ranking, dense_ranking
from memory.retrieval.pagerank.scoring import rank_as_hipporag2
from memory.retrieval.query_context import QueryContext


def rank(context: QueryContext) -> Ranking:
    seeds = link_phrases(context)
    if not seeds:
        return dense_ranking(context, note="the memory contains no phrases: dense retrieval")
    return rank_as_hipporag2(context, seeds)
