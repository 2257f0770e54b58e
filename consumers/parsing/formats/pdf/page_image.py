"""Draws a page of a PDF for OCR."""

from io import BytesIO

import pypdfium2

from consumers.parsing.limits import PictureError

_DPI = 300
_MAX_PIXELS = 40_000_000
"""Maximum size of the image in pixels. A larger page, such as a plan, is drawn with fewer dots per inch."""


def page_image(data: bytes, index: int) -> bytes:
    """Returns the page as a greyscale image (PGM). `index` counts from 0. Raises PictureError if the page cannot be
    drawn."""
    try:
        document = pypdfium2.PdfDocument(data)
        try:
            page = document[index]
            width, height = page.get_size()
            scale = min(_DPI / 72, (_MAX_PIXELS / max(width * height, 1.0)) ** 0.5)
            image = page.render(scale=scale, grayscale=True).to_pil()
            out = BytesIO()
            image.save(out, "PPM")
        finally:
            document.close()
    except (pypdfium2.PdfiumError, ValueError) as error:
        raise PictureError(f"the page cannot be drawn ({error})") from error
    return out.getvalue()
