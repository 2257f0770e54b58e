"""Dense retrieval: passages by cosine with the query, without the graph."""

from memory.retrieval.mode_result import Ranking, dense_ranking
from memory.retrieval.query_context import QueryContext


def rank(context: QueryContext) -> Ranking:
    return dense_ranking(context)
