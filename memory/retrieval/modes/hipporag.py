"""HippoRAG 1 (section 2): links the query's names to phrases, walks over phrases only, scores passages by their phrases."""

from memory.retrieval.linking.phrases import link_query_entities
from memory.retrieval.mode_result import Ranking, dense_ranking
from memory.retrieval.pagerank.scoring import rank_by_pagerank, rank_without_walk
from memory.retrieval.query_context import QueryContext


def rank(context: QueryContext) -> Ranking:
    seeds = link_query_entities(context)
    if not seeds:
        return dense_ranking(context, note="no name in the query: dense retrieval")
    walk = context.settings.walk
    if walk == "pagerank":
        return rank_by_pagerank(context, seeds, None)
    return rank_without_walk(context, seeds, neighbours=walk == "neighbours")
