"""NER to node: HippoRAG 2 with seeds as in HippoRAG 1, the phrases nearest to the names in the query (paper, Table 4)."""

from memory.retrieval.linking.phrases import link_query_entities
from memory.retrieval.mode_result import Ranking, dense_ranking
from memory.retrieval.pagerank.scoring import rank_as_hipporag2
from memory.retrieval.query_context import QueryContext


def rank(context: QueryContext) -> Ranking:
    seeds = link_query_entities(context)
    if not seeds:
        return dense_ranking(context, note="no name in the query: dense retrieval")
    return rank_as_hipporag2(context, seeds)
