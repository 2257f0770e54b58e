"""The numbers that vectors are kept in: two bytes a component, half of what an encoder gives.

A component is kept as the nearest whole multiple of 2⁻¹⁴ that float16 holds too: below 1/8 any multiple, above one of eleven
binary digits. So the tables have vectors as float16, which other readers of Lance understand, and the index has the same
numbers as int16: a processor makes float32 of those five times as fast as numpy does of float16. Whatever computes with a
vector of the memory computes with the same numbers.

A cosine of two unit vectors of 384 dimensions changes by 3e-5 in the root mean square.
"""

import numpy as np
from numpy.typing import NDArray

STEP = np.float32(2.0**-14)
"""What a component is a multiple of. A power of two: a product with it only moves the binary point."""

LARGEST = 2**15 - 2**4
"""Of the multiples that float16 and int16 hold. A component is below 2, and those of unit vectors are 1 at most."""

EVERY_MULTIPLE = 2**11
"""Up to here float16 holds every whole number."""

Fixed = NDArray[np.int16]
"""Components as multiples of `STEP`."""


def fixed(vectors: NDArray[np.float32]) -> Fixed:
    """The multiples nearest to `vectors`, whose components are below 2; the same shape. Exact for what `floats` gave."""
    scaled = np.multiply(vectors, 1 / STEP, dtype=np.float32, order="C").clip(-LARGEST, LARGEST)
    multiples: Fixed = np.rint(scaled).astype(np.int16)
    # Few are so large: float16 takes long.
    large = np.flatnonzero(np.abs(multiples) > EVERY_MULTIPLE)
    multiples.reshape(-1)[large] = scaled.reshape(-1)[large].astype(np.float16).astype(np.int16)
    return multiples


def floats(multiples: Fixed, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """The vectors that `multiples` stand for; to `out` where it is given."""
    vectors: NDArray[np.float32] = np.multiply(multiples, STEP, out=out)
    return vectors
