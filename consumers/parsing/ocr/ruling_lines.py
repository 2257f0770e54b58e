"""Removes the lines of tables and forms from a picture: Tesseract takes a ruled table for a drawing and reads nothing of it."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

_DARK = 160
"""Grey values below this are ink."""
_SHARE = 15
"""A line is longer than the width (or height) of the page divided by this. No stroke of a letter is so long."""
_SHORTEST = 60
_MOST_PIXELS = 24_000_000
"""Larger pictures stay as they are, because this takes nine bytes per pixel."""


def without_ruling_lines(image: Image.Image) -> Image.Image:
    """Return a picture in shades of grey without its long horizontal and vertical lines."""
    if image.width * image.height > _MOST_PIXELS:
        return image
    pixels = np.array(image)
    dark = pixels < _DARK
    for page, ink in ((pixels, dark), (pixels.T, dark.T)):
        page[_lines(ink)] = 255
    return Image.fromarray(pixels)


def _lines(ink: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the pixels of rows of ink that are longer than the limit, and those beside them, which are grey."""
    length = max(ink.shape[1] // _SHARE, _SHORTEST)
    if length >= ink.shape[1]:
        return np.zeros_like(ink)
    inside = np.cumsum(np.pad(ink, ((0, 0), (1, 0))), axis=1, dtype=np.int32)
    begins = (inside[:, length:] - inside[:, :-length]) == length
    covered = np.cumsum(np.pad(begins, ((0, 0), (length, length))), axis=1, dtype=np.int32)
    lines = (covered[:, length:] - covered[:, :-length])[:, : ink.shape[1]] > 0
    lines[1:] |= lines[:-1]
    lines[:-1] |= lines[1:]
    return lines
