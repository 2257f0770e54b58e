"""Seeds from linked triples (HippoRAG 2, section 3.5 and appendix G.1)."""

from collections.abc import Sequence

from memory.retrieval.linking.phrases import heaviest_first, specificity
from memory.retrieval.query_context import QueryContext
from memory.types import LinkedTriple, Seed


def phrase_seeds(context: QueryContext, triples: Sequence[LinkedTriple]) -> list[Seed]:
    """Returns the `seed_phrases` heaviest phrases of the kept triples.

    A phrase's weight is the mean score of the kept triples that contain it, as in the paper, times its node specificity, as in
    the authors' code (`graph_search_with_fact_entities`). Without the setting `node_specificity`, it is the paper's weight.
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
