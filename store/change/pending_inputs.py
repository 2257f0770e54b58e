"""The inputs that a batch lacks before it can be committed: extractions, then vectors."""

from dataclasses import dataclass

from store.change.passage_documents import holders_after
from store.change.row_numbers import RowNumbers
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
    """Returns the passages that need the local extractor and have no extraction yet, in first-seen order."""
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
    """Returns the texts of the batch without a vector in the store. `batch.extractions` must be complete."""
    numbers = RowNumbers(index)
    extracted = {extraction.passage: extraction.triples for extraction in batch.extractions}
    texts = {passage.id: passage for passage in batch.passages}
    passages: list[PassageText] = []
    for passage, holders in holders_after(index, batch).items():
        if passage not in index.passage_rows and holders:
            passages.append(texts[passage])
        numbers.rows(supplied_triples(holders) or ())
    for triples in extracted.values():
        numbers.rows(triples)
    text_of = {row: text for text, row in numbers.phrases.items()}

    def text(row: int) -> str:
        return text_of[row] if row in text_of else index.phrases[row]

    new = ((text(s), predicate, text(o)) for s, predicate, o in numbers.triples)
    return MissingVectors(tuple(passages), tuple(numbers.phrases), tuple(filter(is_statement, new)))
