"""The ways to retrieve, by the name that a query gives them."""

from collections.abc import Callable, Mapping

from memory.asking import Asked, Ranking
from memory.modes.fused import fused
from memory.modes.hipporag import hipporag
from memory.modes.hipporag2 import hipporag2, ner_to_node, query_to_node
from memory.modes.walking import dense


def bm25(asked: Asked) -> Ranking:
    """Passages that share a word with the query, by BM25."""
    with asked.stage("postings"):
        scores = asked.snapshot.bm25(asked.query)
    return Ranking(scores, among=scores > 0)


MODES: Mapping[str, Callable[[Asked], Ranking]] = {
    "fused": fused,
    "hipporag2": hipporag2,
    "query-to-node": query_to_node,
    "ner-to-node": ner_to_node,
    "hipporag": hipporag,
    "dense": dense,
    "bm25": bm25,
}
