"""HippoRAG, version 1 (section 2): names to phrases, a walk over phrases alone, passages by the phrases in them."""

from memory.asking import Asked, Ranking
from memory.modes.hipporag2 import named_seeds
from memory.modes.walking import dense, walk


def hipporag(asked: Asked) -> Ranking:
    seeds = named_seeds(asked)
    return walk(asked, seeds, None) if seeds else dense(asked, note="no name in the query: dense retrieval")
