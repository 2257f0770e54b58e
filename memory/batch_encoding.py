"""Completes a batch: encodes the texts that have no vector in the store."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from memory.types import Encoder, Matrix
from store.change.pending_inputs import MissingVectors
from store.store import Store
from store.types import Batch, EncoderIdentity, Triple

ENCODE_SLICE_S = 0.25
ENCODE_SLICE_CHARS = (4_096, 262_144)
"""Minimum and maximum number of characters of a slice. Within this range, the size is chosen so that a slice takes about
`ENCODE_SLICE_S`."""

Vectors = dict[str, NDArray[np.float32]]


def triple_text(triple: Triple) -> str:
    """Returns the text encoded for a triple: its quoted parts, as in HippoRAG 2 (`docs/explanation/retrieval.md`)."""
    subject, predicate, object_ = triple
    return f"('{subject}', '{predicate}', '{object_}')"


@dataclass(slots=True)
class EncodedAhead:
    """Vectors by text, encoded before their batch is completed."""

    rough: Vectors = field(default_factory=dict)
    exact: Vectors = field(default_factory=dict)
    made_by: EncoderIdentity | None = None
    """The encoder of these vectors; None if it also completes the batch."""

    def encode_slice(self, encoder: Encoder, rough: Sequence[str], exact: Sequence[str]) -> None:
        self.rough |= _encoded(encoder.encode_low_precision, rough)
        self.exact |= _encoded(encoder.encode, exact)


def missing_texts(store: Store, batch: Batch) -> tuple[list[str], list[str]]:
    """Returns two lists of texts to encode for the batch, shortest first: passages and triples (low precision), and phrases
    (full precision)."""
    missing = store.missing(batch)
    return sorted(set(_contents(missing)), key=len), sorted(set(missing.phrases), key=len)


class SliceSize:
    """The number of characters encoded in one slice, adapted so that a slice takes about `ENCODE_SLICE_S`."""

    def __init__(self) -> None:
        self.chars = ENCODE_SLICE_CHARS[0]

    def adapt(self, took_s: float, full: bool) -> None:
        """Adapts the size to the duration of the last slice. If the slice was not `full`, the size is not increased."""
        factor = ENCODE_SLICE_S / max(took_s, 1e-3)
        min_chars, max_chars = ENCODE_SLICE_CHARS
        if factor < 1 or full:
            self.chars = min(max(int(self.chars * min(factor, 2.0)), min_chars), max_chars)


def slices(texts: Sequence[str], chars: int) -> Iterator[list[str]]:
    """Yields runs of at least one text with at most `chars` characters in total."""
    run: list[str] = []
    size = 0
    for text in texts:
        if run and size + len(text) > chars:
            yield run
            run, size = [], 0
        run.append(text)
        size += len(text)
    if run:
        yield run


def with_vectors(store: Store, encoder: Encoder, batch: Batch, ahead: EncodedAhead | None = None) -> Batch:
    """Returns `batch` with the vectors that its commit needs.

    Texts in `ahead` are not encoded again. Each kind of text is encoded in one call, so that texts of equal length are encoded
    together.
    """
    ahead = ahead or EncodedAhead()
    missing = store.missing(batch)
    if not (missing.passages or missing.triples or missing.phrases):
        return batch
    contents = _contents(missing)
    ahead.encode_slice(
        encoder,
        [text for text in dict.fromkeys(contents) if text not in ahead.rough],
        [text for text in missing.phrases if text not in ahead.exact],
    )
    passages = len(missing.passages)
    rough = [ahead.rough[text] for text in contents]
    return replace(
        batch,
        passage_vectors=dict(zip((passage.id for passage in missing.passages), rough[:passages], strict=True)),
        phrase_vectors={phrase: ahead.exact[phrase] for phrase in missing.phrases},
        triple_vectors=dict(zip(missing.triples, rough[passages:], strict=True)),
    )


def _contents(missing: MissingVectors) -> list[str]:
    """Returns the texts of the passages, then of the triples."""
    return [*(passage.full for passage in missing.passages), *map(triple_text, missing.triples)]


def _encoded(encode: Callable[[Sequence[str]], Matrix], texts: Sequence[str]) -> Vectors:
    return dict(zip(texts, encode(texts), strict=True)) if texts else {}
