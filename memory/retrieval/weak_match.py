"""Whether the best match of a query is weak: nothing in the memory answers it well.

What counts is the cosine of the query with the nearest passage. Which cosine is weak depends on the encoder
(`memory.encoder.calibration`; `python -m bench weak_matches`; `docs/explanation/retrieval.md`, "Weak matches").
"""


def is_weak(weak_below: float | None, best_cosine: float | None) -> bool | None:
    """None where nothing can be said: of an encoder of which nothing is known, or of passages that were compared by words."""
    return None if weak_below is None or best_cosine is None else best_cosine < weak_below
