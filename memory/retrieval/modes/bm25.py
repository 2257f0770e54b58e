"""BM25: passages that share a word with the query, without embeddings or the graph."""

from memory.retrieval.mode_result import Ranking
from memory.retrieval.query_context import QueryContext


def rank(context: QueryContext) -> Ranking:
    with context.stage("postings"):
        scores = context.snapshot.bm25(context.query)
    return Ranking(scores, candidates=scores > 0)
