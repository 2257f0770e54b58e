"""Completing a batch: what the store does not hold yet is encoded, and nothing else."""

from dataclasses import replace

from memory.types import Encoder, Matrix
from store.store import Store
from store.types import Batch, Triple


def triple_text(triple: Triple) -> str:
    """What is embedded of a triple: the three parts quoted, as HippoRAG 2's code writes them (`docs/retrieval.md`)."""
    subject, predicate, object_ = triple
    return f"('{subject}', '{predicate}', '{object_}')"


def with_vectors(store: Store, encoder: Encoder, batch: Batch) -> Batch:
    """`batch` with the vectors that committing it needs, all of a kind in one call: texts of equal length go together."""
    missing = store.missing(batch)
    contents = [*(passage.full for passage in missing.passages), *map(triple_text, missing.triples)]
    if not contents and not missing.phrases:
        return batch
    rough: Matrix = encoder.encode_roughly(contents)
    exact: Matrix = encoder.encode(missing.phrases)
    passages = len(missing.passages)
    return replace(
        batch,
        passage_vectors=dict(zip((passage.id for passage in missing.passages), rough[:passages], strict=True)),
        phrase_vectors=dict(zip(missing.phrases, exact, strict=True)),
        triple_vectors=dict(zip(missing.triples, rough[passages:], strict=True)),
    )
