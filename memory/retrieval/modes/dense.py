"""Dense retrieval: passages by cosine with the query, without the graph."""

from memory.retrieval.query_context import QueryContext
from memory.retrieval.ranking import Ranking, dense_ranking


def rank(context: QueryContext) -> Ranking:
    return dense_ranking(context)
