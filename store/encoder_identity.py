"""The identity of an encoder, and the constants that depend on its cosines. Imports nothing heavy."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """The encoder that made the store's vectors; a store opens only with the same encoder."""

    name: str
    dim: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """What depends on an encoder's cosines. `weak_below`: a query whose nearest passage has a lower cosine has a weak match;
    None if nothing is known about that."""

    synonym_threshold: float
    weak_below: float | None
