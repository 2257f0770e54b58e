"""Decodes image files for OCR, within limits of size, and improves images that Tesseract would read badly."""

from io import BytesIO

from PIL import Image, ImageOps, UnidentifiedImageError

from consumers.parsing.limits import PictureError
from consumers.parsing.ocr.ruling_lines import without_ruling_lines

FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP", "PPM")
"""The only Pillow decoders that may run. Other decoders call external programs or are hardly used."""
_MAX_PIXELS = 60_000_000
_MIN_PIXELS, _MIN_SIDE = 10_000, 24
"""A picture with fewer pixels or a shorter side counts as an icon."""
_SMALL_PIXELS = 2_500_000
"""A picture with fewer pixels, such as a photograph of a screen, is enlarged for OCR."""
_ENLARGED = 2


def frame_count(data: bytes) -> int:
    """Returns the number of pages of an image file; 1 for an animation. Raises PictureError if the file cannot be
    opened."""
    image = _opened(data)
    return getattr(image, "n_frames", 1) if image.format == "TIFF" else 1


def is_icon(data: bytes) -> bool:
    """Whether the picture is too small for text. Raises PictureError if it cannot be decoded or has too many pixels."""
    image = _opened(data)
    _refuse_large(image)
    return min(image.size) < _MIN_SIDE or image.width * image.height < _MIN_PIXELS


def frame_of(data: bytes, number: int) -> bytes:
    """Returns page `number`, counted from 0, of an image file as an image file. Raises PictureError if the page is
    damaged."""
    image = _opened(data)
    try:
        image.seek(number)
        _refuse_large(image)
        out = BytesIO()
        image.save(out, "TIFF")
    except MemoryError:
        raise
    except Exception as error:  # Pillow raises many kinds of errors for damaged files
        raise PictureError(f"its page {number + 1} is damaged ({error})") from error
    return out.getvalue()


def for_recognition(data: bytes) -> bytes:
    """Returns the picture as a greyscale image (PGM) without ruling lines. Raises PictureError if the picture is
    damaged."""
    image = _opened(data)
    _refuse_large(image)
    try:
        turned = ImageOps.exif_transpose(image)
        if "A" in turned.getbands() or "transparency" in turned.info:
            shown = Image.new("RGBA", turned.size, "white")
            shown.alpha_composite(turned.convert("RGBA"))
            turned = shown
        grey = turned.convert("L")
        if grey.width * grey.height < _SMALL_PIXELS:
            grey = grey.resize((grey.width * _ENLARGED, grey.height * _ENLARGED), Image.Resampling.LANCZOS)
        out = BytesIO()
        without_ruling_lines(grey).save(out, "PPM")
    except MemoryError:
        raise
    except Exception as error:  # as above
        raise PictureError(f"it is damaged ({error})") from error
    return out.getvalue()


def _refuse_large(image: Image.Image) -> None:
    if image.width * image.height > _MAX_PIXELS:
        raise PictureError(f"it has more than {_MAX_PIXELS:,} pixels")


def _opened(data: bytes) -> Image.Image:
    try:
        return Image.open(BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError as error:  # its message contains an object's address
        raise PictureError("it is damaged") from error
    except Exception as error:  # as above, and for a decompression bomb
        raise PictureError(f"it is damaged ({error})") from error
