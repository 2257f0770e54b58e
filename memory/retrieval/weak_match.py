"""Decides whether the best match of a query is weak: no passage in the memory answers it well.

The criterion is the cosine of the query with the nearest passage. The threshold depends on the encoder and has to be measured
for each (`python -m bench weak_matches`; `docs/explanation/retrieval.md`, "Weak matches").
"""

from store.types import EncoderIdentity

WEAK_BELOW = {"sentence-transformers/all-MiniLM-L6-v2": 0.43}
"""Cosine below which the best match is weak, by the encoder's name."""


def is_weak(encoder: EncoderIdentity, best_cosine: float | None) -> bool | None:
    """Whether the match is weak; None for an encoder without a threshold, or if passages were compared by words."""
    below = WEAK_BELOW.get(encoder.name)
    return None if below is None or best_cosine is None else best_cosine < below
