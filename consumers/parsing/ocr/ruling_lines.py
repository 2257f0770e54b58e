"""Removes the lines of tables and forms from a picture: Tesseract takes a ruled table for a drawing and reads nothing of it."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

_DARK = 160
"""Grey values below this are ink."""
_SHARE, _SHORTEST = 15, 60
"""A line is at least as long as the longer side of the page divided by this, and as this number of pixels."""
_SLENDER = 16
"""A line is thinner than the shortest line's length divided by this. Strokes of large letters are thicker."""
_MOST_PIXELS = 24_000_000
"""Larger pictures stay as they are, because this takes ten bytes per pixel."""


def without_ruling_lines(image: Image.Image) -> Image.Image:
    """Returns a picture in shades of grey without its long horizontal and vertical lines."""
    if image.width * image.height > _MOST_PIXELS:
        return image
    pixels = np.array(image)
    dark = pixels < _DARK
    for page, ink in ((pixels, dark), (pixels.T, dark.T)):
        page[_lines(ink)] = 255
    return Image.fromarray(pixels)


def _lines(ink: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Returns the pixels of long, thin, horizontal lines, and the pixels above and below them, which are grey."""
    length = max(max(ink.shape) // _SHARE, _SHORTEST)
    lines = _runs(ink, length)
    lines &= ~_runs(lines.T, length // _SLENDER).T
    lines[1:] |= lines[:-1]
    lines[:-1] |= lines[1:]
    return lines


def _runs(ink: NDArray[np.bool_], length: int) -> NDArray[np.bool_]:
    """Returns the pixels that belong to a horizontal run of at least `length` pixels of ink."""
    if length > ink.shape[1]:
        return np.zeros_like(ink)
    inside = np.cumsum(np.pad(ink, ((0, 0), (1, 0))), axis=1, dtype=np.int32)
    begins = (inside[:, length:] - inside[:, :-length]) == length
    covered = np.cumsum(np.pad(begins, ((0, 0), (length, length))), axis=1, dtype=np.int32)
    return (covered[:, length:] - covered[:, :-length])[:, : ink.shape[1]] > 0
