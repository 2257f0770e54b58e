"""Pages drawn from known text that look scanned or photographed, for measurements and tests of OCR."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

_SENTENCES = (
    "The harbour master keeps the ledger of the lamps in a drawer below the chart table.",
    "Sabine Rell ground the first lens in the winter of 1911, after the storm had broken the pier.",
    "Oil is bought in barrels of forty litres, and each barrel is weighed before it is opened.",
    "A lamp that burns with a yellow flame needs a new wick, or its chimney is not clean.",
    "The keeper writes down the wind, the height of the water and the names of passing ships.",
    "In March the northern channel is closed to ships that draw more than seven metres.",
)
_ROWS = (
    ("Lamp", "Oil", "Keeper"),
    ("North pier", "41 litres", "Voss"),
    ("South pier", "38 litres", "Teal"),
    ("Quay", "12 litres", "Amber"),
)
_PAGE = (8.27, 11.69)
"""A4, in inches."""


@dataclass(frozen=True, slots=True)
class ScannedPage:
    """A page and its words, in reading order."""

    image: Image.Image
    words: tuple[str, ...]


def scanned_pages() -> Mapping[str, ScannedPage]:
    """Returns a page of each kind: two resolutions, two columns, a table, and a rotated page."""
    column = _flowed(300, 6.6)
    pages = {
        "150 dpi": _page(150, [(0.9, line) for line in _flowed(150, 6.6)]),
        "300 dpi": _page(300, [(0.9, line) for line in column]),
        "two columns": _columns(300),
        "table": _table(300),
    }
    pages["rotated"] = ScannedPage(pages["300 dpi"].image.rotate(90, expand=True), pages["300 dpi"].words)
    return pages


def encoded(pages: Mapping[str, ScannedPage], format: str) -> bytes:
    """Returns the pages as one file: a TIFF, or a PDF without a text layer."""
    first, *more = (page.image for page in pages.values())
    out = BytesIO()
    first.save(out, format, save_all=True, append_images=more, resolution=300)
    return out.getvalue()


def _font(dpi: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(round(11 / 72 * dpi))


def _flowed(dpi: int, width: float) -> list[str]:
    """Returns the sentences, broken into lines of at most `width` inches."""
    font, lines = _font(dpi), [""]
    for word in " ".join(_SENTENCES).split():
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) <= width * dpi:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _blank(dpi: int) -> Image.Image:
    return Image.new("L", (round(_PAGE[0] * dpi), round(_PAGE[1] * dpi)), 255)


def _page(dpi: int, lines: list[tuple[float, str]]) -> ScannedPage:
    image = _blank(dpi)
    _write(image, dpi, lines)
    return ScannedPage(image, _words(text for _, text in lines))


def _write(image: Image.Image, dpi: int, lines: list[tuple[float, str]], top: float = 1.0) -> None:
    draw = ImageDraw.Draw(image)
    for number, (left, text) in enumerate(lines):
        draw.text((left * dpi, (top + 0.22 * number) * dpi), text, fill=20, font=_font(dpi))


def _columns(dpi: int) -> ScannedPage:
    image, lines = _blank(dpi), 3 * _flowed(dpi, 2.9)
    half = (len(lines) + 1) // 2
    _write(image, dpi, [(0.9, line) for line in lines[:half]])
    _write(image, dpi, [(4.4, line) for line in lines[half:]])
    return ScannedPage(image, _words(lines))


def _table(dpi: int) -> ScannedPage:
    image = _blank(dpi)
    draw = ImageDraw.Draw(image)
    for number, row in enumerate(_ROWS):
        top = 1.0 + 0.4 * number
        for column, cell in enumerate(row):
            left = 0.9 + 2.0 * column
            draw.rectangle([left * dpi, top * dpi, (left + 2) * dpi, (top + 0.4) * dpi], outline=60, width=3)
            draw.text(((left + 0.1) * dpi, (top + 0.1) * dpi), cell, fill=20, font=_font(dpi))
    return ScannedPage(image, _words(cell for row in _ROWS for cell in row))


def _words(texts: "Iterator[str] | list[str]") -> tuple[str, ...]:
    return tuple(word.strip(".,").casefold() for text in texts for word in text.split())
