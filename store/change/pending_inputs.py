"""Determines which inputs a batch lacks before it can be committed: first extractions, then vectors."""

from dataclasses import dataclass

from store.change.plan import holders_after
from store.index.effective_triples import needs_extraction, supplied_triples
from store.index.live_index import LiveIndex
from store.types import Batch, PassageText, Triple, is_statement


@dataclass(frozen=True, slots=True)
class MissingVectors:
    """The texts to encode before a batch can be committed."""

    passages: tuple[PassageText, ...] = ()
    phrases: tuple[str, ...] = ()
    triples: tuple[Triple, ...] = ()


def unextracted(index: LiveIndex, batch: Batch) -> list[PassageText]:
    """Returns the passages that need the local extractor and have no extraction yet, in order of first appearance."""
    texts = {passage.id: passage for passage in batch.passages}
    done = {extraction.passage for extraction in batch.extractions}
    out: list[PassageText] = []
    for passage, holders in holders_after(index, batch).items():
        if passage in done or not needs_extraction(holders):
            continue
        row = index.passage_rows.get(passage)
        if row is None:
            out.append(texts[passage])
        elif index.extracted[row] is None:
            out.append(index.passages[row])
    return out


def missing_vectors(index: LiveIndex, batch: Batch) -> MissingVectors:
    """Returns the texts of the batch without a vector in the store. `batch.extractions` must be complete.

    May run concurrently with commits, because it looks up each text once and assigns no rows.
    """
    triples: dict[Triple, None] = {}
    texts = {passage.id: passage for passage in batch.passages}
    passages: list[PassageText] = []
    for passage, holders in holders_after(index, batch).items():
        if passage not in index.passage_rows and holders:
            passages.append(texts[passage])
        triples |= dict.fromkeys(sorted(supplied_triples(holders) or ()))
    for extraction in batch.extractions:
        triples |= dict.fromkeys(sorted(extraction.triples))
    ends = dict.fromkeys(end for subject, _, object_ in triples for end in (subject, object_))
    rows = {phrase: index.phrase_rows.get(phrase) for phrase in ends}

    def is_known(triple: Triple) -> bool:
        subject, object_ = rows[triple[0]], rows[triple[2]]
        return subject is not None and object_ is not None and (subject, triple[1], object_) in index.triple_rows

    phrases = tuple(phrase for phrase, row in rows.items() if row is None)
    return MissingVectors(
        tuple(passages), phrases, tuple(triple for triple in triples if is_statement(triple) and not is_known(triple))
    )
