"""Links a query to phrases: the nearest phrases, and the phrases that it names."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory.phrase_normalisation import normalise_phrase
from memory.retrieval.linking.compared_rows import ComparedRows
from memory.retrieval.linking.query_entities import known_names, query_entities
from memory.retrieval.query_context import QueryContext
from memory.types import Seed


def link_phrases(context: QueryContext) -> list[Seed]:
    """Returns the `seed_phrases` phrases nearest to the query, weighted by their cosine (min-max-scaled) times
    `specificity`."""
    snapshot = context.snapshot
    alive = snapshot.phrase_alive & snapshot.phrase_vectors.known
    if not context.is_known or not alive.any():
        return link_known_entities(context, known_names(context.query, snapshot))
    with context.stage("phrases"):
        vector = context.encoder.encode_phrase_query(context.query, is_name=False)
        compared = _compared(context, vector, alive)
        rows, cosines = compared.nearest(context.settings.seed_phrases, snapshot.phrase)
        scaled = compared.min_max()(cosines)
    return heaviest_first(
        [
            Seed(row, snapshot.phrase(row), float(score) * specificity(context, row))
            for row, score in zip(rows, scaled, strict=True)
        ]
    )


def link_query_entities(context: QueryContext) -> list[Seed]:
    """Returns the phrase nearest to each name in the query, weighted by `specificity` (HippoRAG, section 2.2)."""
    snapshot = context.snapshot
    names = named_entities(context, by_model=True)
    if not snapshot.living_phrases:
        return []
    rows = {_nearest_phrase(context, name) for name in names}
    return heaviest_first(
        [Seed(row, snapshot.phrase(row), specificity(context, row)) for row in rows if row is not None]
    )


def named_entities(context: QueryContext, by_model: bool) -> list[str]:
    """Returns the names in the query, extracted by the model or by rules.

    The model is used if one is configured, and `by_model` or the settings request it. If the model is unavailable, the rules
    replace it. If the encoder knows no word of the query, the rules also return every known phrase in it.
    """
    chosen = context.settings.entities
    if context.entity_reader is not None and (chosen == "llm" or (chosen == "auto" and by_model)):
        with context.stage("entities"):
            read = context.entity_reader.read(context.query)
        if read is not None:
            return list(read)
    with context.stage("names"):
        by_rules = query_entities if by_model or context.is_known else known_names
        return by_rules(context.query, context.snapshot)


def link_known_entities(context: QueryContext, names: Sequence[str]) -> list[Seed]:
    """Returns seeds for the names that are phrases of compared passages, weighted by `specificity`."""
    snapshot = context.snapshot
    rows = {snapshot.phrase_row(normalise_phrase(name)) for name in names}
    return heaviest_first(
        [
            Seed(row, snapshot.phrase(row), specificity(context, row))
            for row in rows
            if row is not None and context.passage_count(row)
        ]
    )


def _nearest_phrase(context: QueryContext, name: str) -> int | None:
    """Returns the row of the phrase nearest to `name`; None if neither the memory nor the encoder knows the name."""
    snapshot = context.snapshot
    phrase = normalise_phrase(name)
    # A known phrase is nearest to itself, so it need not be encoded.
    row = snapshot.phrase_row(phrase)
    if row is not None:
        return row
    with context.stage("encode"):
        vector = context.encoder.encode_phrase_query(phrase, is_name=True)
    with context.stage("phrases"):
        if not vector.any():
            return None
        alive = snapshot.phrase_alive & snapshot.phrase_vectors.known
        rows, _ = _compared(context, vector, alive).nearest(1, snapshot.phrase)
        return rows[0] if rows else None


def _compared(context: QueryContext, vector: NDArray[np.float32], alive: NDArray[np.bool_]) -> ComparedRows:
    snapshot = context.snapshot
    return ComparedRows(snapshot.phrase_vectors, vector, alive, snapshot.living_phrases, context.settings.exact)


def heaviest_first(seeds: Sequence[Seed]) -> list[Seed]:
    """Returns the seeds in descending order of weight, ties ordered by phrase."""
    return sorted(seeds, key=lambda seed: (-seed.weight, seed.phrase))


def specificity(context: QueryContext, phrase: int) -> float:
    """Returns the node specificity, 1 / number of passages with the phrase (HippoRAG, section 2.2); 1 if it is disabled."""
    if not context.settings.node_specificity:
        return 1.0
    return 1.0 / max(context.passage_count(phrase), 1)
