"""HippoRAG 2 (paper, section 3), query to triple: the seeds are the phrases of the nearest triples that the filter keeps."""

from memory.retrieval.linking.seeds import phrase_seeds
from memory.retrieval.linking.triples import link_triples
from memory.retrieval.mode_result import Ranking, dense_ranking
from memory.retrieval.pagerank.scoring import rank_as_hipporag2
from memory.retrieval.query_context import QueryContext


def rank(context: QueryContext) -> Ranking:
    triples = link_triples(context)
    if not any(triple.kept for triple in triples):
        reason = "recognition memory kept no triple" if triples else "the memory contains no triples"
        return dense_ranking(context, triples, f"{reason}: dense retrieval")
    return rank_as_hipporag2(context, phrase_seeds(context, triples), triples)
