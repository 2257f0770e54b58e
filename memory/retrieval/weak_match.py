"""Decides whether the best match of a query is weak: no passage in the memory answers it well.

The criterion is the cosine of the query with the nearest passage. The threshold depends on the encoder
(`memory.encoder.calibration`; `python -m bench weak_matches`; `docs/explanation/retrieval.md`, "Weak matches").
"""


def is_weak(weak_below: float | None, best_cosine: float | None) -> bool | None:
    """Whether the match is weak; None for an encoder without a threshold, or if passages were compared by words."""
    return None if weak_below is None or best_cosine is None else best_cosine < weak_below
