"""Measures encoding time, for figures that exclude it."""

import time
from collections.abc import Callable, Sequence

from memory.types import Encoder, Matrix


class ClockedEncoder(Encoder):
    """Encodes with `encoder`, and counts the wall and processor seconds that this takes."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.identity = encoder.identity
        self.wall = self.work = 0.0

    def encode(self, texts: Sequence[str]) -> Matrix:
        return self._clocked(self._encoder.encode, texts)

    def encode_low_precision(self, texts: Sequence[str]) -> Matrix:
        return self._clocked(self._encoder.encode_low_precision, texts)

    def _clocked(self, encode: Callable[[Sequence[str]], Matrix], texts: Sequence[str]) -> Matrix:
        wall, work = time.perf_counter(), time.process_time()
        vectors = encode(texts)
        self.wall += time.perf_counter() - wall
        self.work += time.process_time() - work
        return vectors

    def encode_query(self, text: str) -> Matrix:
        return self._encoder.encode_query(text)
