"""HippoRAG 2 and its two ablations in linking (paper, section 3 and Table 4): they differ in where the seeds come from."""

from collections.abc import Callable, Sequence

import numpy as np

from memory.asking import Asked, Ranking
from memory.entities import query_entities
from memory.linking import link_entities, link_phrases, link_triples
from memory.modes.walking import dense, walk
from memory.ranking import MinMax
from memory.seeds import phrase_seeds
from memory.types import LinkedTriple, Seed


def hipporag2(asked: Asked) -> Ranking:
    """Query to triple: seeds are the phrases of the triples that are nearest to the query and recognised."""
    triples = link_triples(asked)
    if not any(triple.kept for triple in triples):
        why = "recognition memory kept no triple" if triples else "the memory holds no triples"
        return dense(asked, triples, f"{why}: dense retrieval")
    return _from(asked, phrase_seeds(asked.snapshot, triples, asked.settings.seed_phrases), triples)


def query_to_node(asked: Asked) -> Ranking:
    """Query to node: seeds are the phrases nearest to the query."""
    return _seeded(asked, link_phrases, "the memory holds no phrases")


def ner_to_node(asked: Asked) -> Ranking:
    """NER to node: seeds are the phrases nearest to the names in the query, one each, as in HippoRAG."""
    return _seeded(asked, named_seeds, "no name in the query")


def named_seeds(asked: Asked) -> list[Seed]:
    """The phrase nearest to each name in the query."""
    with asked.stage("names"):
        names = query_entities(asked.query, asked.snapshot)
    return link_entities(asked, names)


def _seeded(asked: Asked, link: Callable[[Asked], list[Seed]], why_none: str) -> Ranking:
    seeds = link(asked)
    return _from(asked, seeds) if seeds else dense(asked, note=f"{why_none}: dense retrieval")


def _from(asked: Asked, seeds: Sequence[Seed], triples: Sequence[LinkedTriple] = ()) -> Ranking:
    if not asked.settings.passage_nodes:
        return walk(asked, seeds, None, triples=triples)
    alive = asked.snapshot.passage_alive
    scaled = np.where(alive, MinMax.of(asked.similarities, alive)(asked.similarities), 0.0)
    return walk(asked, seeds, scaled * asked.settings.passage_weight, triples=triples)
