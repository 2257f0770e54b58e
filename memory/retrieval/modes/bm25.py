"""BM25: passages that share a word with the query, without embeddings or the graph."""

from memory.retrieval.query_context import QueryContext
from memory.retrieval.ranking import Ranking


def rank(context: QueryContext) -> Ranking:
    with context.stage("postings"):
        scores = context.snapshot.bm25(context.query)
    return Ranking(scores, candidates=scores > 0)
