"""Whether the best match of a query is weak: nothing in the memory answers it well.

What counts is the cosine of the query with the nearest passage. Which cosine is weak depends on the encoder, so each has to be
measured (`python -m bench weak_matches`; `docs/explanation/retrieval.md`, "Weak matches").
"""

from store.types import EncoderIdentity

WEAK_BELOW = {"sentence-transformers/all-MiniLM-L6-v2": 0.43}
"""By the encoder's name."""


def is_weak(encoder: EncoderIdentity, best_cosine: float | None) -> bool | None:
    """None where nothing can be said: an encoder that was not measured, or passages that were compared by words."""
    below = WEAK_BELOW.get(encoder.name)
    return None if below is None or best_cosine is None else best_cosine < below
