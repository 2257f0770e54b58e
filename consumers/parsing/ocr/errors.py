"""The error for pictures that OCR cannot read. Importing it loads no library for pictures."""


class PictureError(Exception):
    """The picture cannot be decoded. The message continues a sentence."""
