"""Cutting a document's text into passages at content-defined boundaries."""

from consumers.splitting.blocks import SEPARATOR, Block, Parsed, SplitSettings
from consumers.splitting.given import give, read_triples
from consumers.splitting.passages import paragraphs, split, split_text
from consumers.splitting.tokens import TOKEN, count_tokens

__all__ = [
    "SEPARATOR",
    "TOKEN",
    "Block",
    "Parsed",
    "SplitSettings",
    "count_tokens",
    "give",
    "paragraphs",
    "read_triples",
    "split",
    "split_text",
]
