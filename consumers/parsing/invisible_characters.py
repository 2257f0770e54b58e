"""Removes characters that only control line breaks. In a stored text, they would split words, and searches would miss
the words."""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from consumers.splitting import TextBlock

_INVISIBLE = re.compile("[\xad\u2060\ufeff]")
"""Soft hyphen, word joiner, and byte order mark. Zero-width spaces are kept because they separate Thai words."""


def without_invisible_characters(title: str, blocks: Iterable[TextBlock]) -> tuple[str, tuple[TextBlock, ...]]:
    """Returns a document's title and blocks without invisible characters. Called for every format."""
    headings = lru_cache(64)(lambda path: tuple(map(_visible, path)))
    return _visible(title), tuple(
        replace(block, text=_visible(block.text), headings=headings(block.headings))
        if _INVISIBLE.search(block.text) or any(map(_INVISIBLE.search, block.headings))
        else block
        for block in blocks
    )


def _visible(text: str) -> str:
    return _INVISIBLE.sub("", text)
