"""Removes the lines of tables and forms from a picture. Tesseract would take a ruled table for a drawing and not read it."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

_DARK = 160
"""Grey values below this threshold are ink."""
_SHARE, _MIN_PIXELS = 15, 60
"""Minimum length of a line: the page's longer side divided by `_SHARE`, but not less than `_MIN_PIXELS` pixels."""
_SLENDER = 16
"""A line is thinner than the minimum length divided by this number. Strokes of large letters are thicker."""
_MAX_PIXELS = 24_000_000
"""Larger pictures are not changed, because the search takes ten bytes of memory per pixel."""


def without_ruling_lines(image: Image.Image) -> Image.Image:
    """Returns a greyscale picture without its long horizontal and vertical lines."""
    if image.width * image.height > _MAX_PIXELS:
        return image
    pixels = np.array(image)
    dark = pixels < _DARK
    for page, ink in ((pixels, dark), (pixels.T, dark.T)):
        page[_lines(ink)] = 255
    return Image.fromarray(pixels)


def _lines(ink: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Returns a mask of the pixels of long, thin, horizontal lines, and of the grey pixels above and below them."""
    length = max(max(ink.shape) // _SHARE, _MIN_PIXELS)
    lines = _runs(ink, length)
    lines &= ~_runs(lines.T, length // _SLENDER).T
    lines[1:] |= lines[:-1]
    lines[:-1] |= lines[1:]
    return lines


def _runs(ink: NDArray[np.bool_], length: int) -> NDArray[np.bool_]:
    """Returns a mask of the pixels in horizontal runs of at least `length` pixels of ink."""
    if length > ink.shape[1]:
        return np.zeros_like(ink)
    inside = np.cumsum(np.pad(ink, ((0, 0), (1, 0))), axis=1, dtype=np.int32)
    begins = (inside[:, length:] - inside[:, :-length]) == length
    covered = np.cumsum(np.pad(begins, ((0, 0), (length, length))), axis=1, dtype=np.int32)
    return (covered[:, length:] - covered[:, :-length])[:, : ink.shape[1]] > 0
