"""The modes of papers: HippoRAG 1 and 2, the variants in Table 4 of the HippoRAG 2 paper, dense retrieval and BM25."""

from collections.abc import Sequence

from memory.retrieval.linking.phrases import heaviest_first, link_phrases, link_query_entities, specificity
from memory.retrieval.linking.triples import link_triples
from memory.retrieval.mode_result import Ranking, dense_ranking
from memory.retrieval.pagerank.scoring import rank_as_hipporag2, rank_by_pagerank, rank_without_walk
from memory.retrieval.query_context import QueryContext
from memory.types import LinkedTriple, Seed


def hipporag2(context: QueryContext) -> Ranking:
    """Query to triple (HippoRAG 2, section 3): the seeds are the phrases of the nearest triples that the filter keeps."""
    triples = link_triples(context)
    if not any(triple.kept for triple in triples):
        reason = "recognition memory kept no triple" if triples else "the memory contains no triples"
        return dense_ranking(context, triples, f"{reason}: dense retrieval")
    return rank_as_hipporag2(context, _phrase_seeds(context, triples), triples)


def _phrase_seeds(context: QueryContext, triples: Sequence[LinkedTriple]) -> list[Seed]:
    """Returns the `seed_phrases` heaviest phrases of the kept triples (HippoRAG 2, section 3.5 and appendix G.1).

    As in the paper, a phrase's weight is the mean score of the kept triples that contain it. As in the authors' code
    (`graph_search_with_fact_entities`), it is multiplied by the node specificity. If the setting `node_specificity` is false,
    the weight is the paper's.
    """
    snapshot = context.snapshot
    sums: dict[int, list[float]] = {}
    for triple in triples:
        if triple.kept:
            for end in snapshot.triple_ends[triple.row]:
                row = int(end)
                sums.setdefault(row, []).append(triple.score * specificity(context, row))
    return heaviest_first([Seed(row, snapshot.phrase(row), sum(parts) / len(parts)) for row, parts in sums.items()])[
        : context.settings.seed_phrases
    ]


def query_to_node(context: QueryContext) -> Ranking:
    """HippoRAG 2 with the phrases nearest to the query as seeds."""
    seeds = link_phrases(context)
    if not seeds:
        return dense_ranking(context, note="the memory contains no phrases: dense retrieval")
    return rank_as_hipporag2(context, seeds)


def ner_to_node(context: QueryContext) -> Ranking:
    """HippoRAG 2 with the seeds of HippoRAG 1: the phrases nearest to the names in the query."""
    seeds = link_query_entities(context)
    if not seeds:
        return dense_ranking(context, note="no name in the query: dense retrieval")
    return rank_as_hipporag2(context, seeds)


def hipporag(context: QueryContext) -> Ranking:
    """HippoRAG 1 (section 2): links the query's names to phrases, walks over phrases only, scores passages by their phrases."""
    seeds = link_query_entities(context)
    if not seeds:
        return dense_ranking(context, note="no name in the query: dense retrieval")
    walk = context.settings.walk
    if walk == "pagerank":
        return rank_by_pagerank(context, seeds, None)
    return rank_without_walk(context, seeds, neighbours=walk == "neighbours")


def dense(context: QueryContext) -> Ranking:
    """Ranks passages by cosine with the query, without the graph."""
    return dense_ranking(context)


def bm25(context: QueryContext) -> Ranking:
    """Ranks the passages that share a word with the query, without embeddings or the graph."""
    with context.stage("postings"):
        scores = context.snapshot.bm25(context.query)
    return Ranking(scores, candidates=scores > 0)
