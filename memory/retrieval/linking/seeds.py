"""Seeds from linked triples (HippoRAG 2, section 3.3 and appendix on seeds)."""

from collections.abc import Sequence

from memory.retrieval.linking.phrases import heaviest_first, passage_count
from memory.types import LinkedTriple, Seed
from store.snapshot import Snapshot


def phrase_seeds(snapshot: Snapshot, triples: Sequence[LinkedTriple], count: int) -> list[Seed]:
    """The `count` heaviest phrases of the kept triples.

    A phrase's weight is the mean of (triple score / number of passages with the phrase) over the kept triples that it is in.
    The division is node specificity.
    """
    sums: dict[int, list[float]] = {}
    for triple in triples:
        if triple.kept:
            for end in snapshot.triple_ends[triple.row]:
                row = int(end)
                sums.setdefault(row, []).append(triple.score / passage_count(snapshot, row))
    return heaviest_first([Seed(row, snapshot.phrase(row), sum(parts) / len(parts)) for row, parts in sums.items()])[
        :count
    ]
