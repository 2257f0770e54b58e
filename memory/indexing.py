"""Completing a batch: what the store does not hold yet is encoded, and nothing else."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memory.types import Encoder
from store.store import Store
from store.types import Batch, Triple, Vector


def triple_text(triple: Triple) -> str:
    """What is embedded of a triple: the three parts quoted, as HippoRAG 2's code writes them (`docs/retrieval.md`)."""
    subject, predicate, object_ = triple
    return f"('{subject}', '{predicate}', '{object_}')"


def with_vectors(store: Store, encoder: Encoder, batch: Batch) -> Batch:
    """`batch` with the vectors that committing it needs. One encoder call, so that texts of equal length go together."""
    missing = store.missing(batch)
    texts = [
        *(passage.full for passage in missing.passages),
        *missing.phrases,
        *(triple_text(triple) for triple in missing.triples),
    ]
    if not texts:
        return batch
    vectors: NDArray[np.float32] = encoder.encode(texts)
    phrases = len(missing.passages)
    triples = phrases + len(missing.phrases)

    def part(start: int, count: int) -> list[Vector]:
        return [vectors[start + i] for i in range(count)]

    return replace(
        batch,
        passage_vectors=dict(zip((p.id for p in missing.passages), part(0, phrases), strict=True)),
        phrase_vectors=dict(zip(missing.phrases, part(phrases, triples - phrases), strict=True)),
        triple_vectors=dict(zip(missing.triples, part(triples, len(missing.triples)), strict=True)),
    )
