"""Splits a document's text into passages at content-defined boundaries."""

from consumers.splitting.blocks import SEPARATOR, Attachment, ParsedText, Picture, PlacedLink, SplitSettings, TextBlock
from consumers.splitting.passages import TOKEN, count_tokens, paragraphs, split, split_text
from consumers.splitting.supplied_triples import assign_triples, read_triples

__all__ = [
    "SEPARATOR",
    "TOKEN",
    "Attachment",
    "ParsedText",
    "Picture",
    "PlacedLink",
    "SplitSettings",
    "TextBlock",
    "assign_triples",
    "count_tokens",
    "paragraphs",
    "read_triples",
    "split",
    "split_text",
]
