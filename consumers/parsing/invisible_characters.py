"""Characters that only control how text is broken into lines. In a stored text they would split words for every search."""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from consumers.splitting import TextBlock

_INVISIBLE = re.compile("[\xad\u2060\ufeff]")
"""Soft hyphen, word joiner, and the byte order mark inside a text. A zero-width space stays: it separates Thai words."""


def without_invisible_characters(title: str, blocks: Iterable[TextBlock]) -> tuple[str, tuple[TextBlock, ...]]:
    """A document's title and blocks without such characters. Every format passes through here."""
    headings = lru_cache(64)(lambda path: tuple(map(_visible, path)))
    return _visible(title), tuple(
        replace(block, text=_visible(block.text), headings=headings(block.headings))
        if _INVISIBLE.search(block.text) or any(map(_INVISIBLE.search, block.headings))
        else block
        for block in blocks
    )


def _visible(text: str) -> str:
    return _INVISIBLE.sub("", text)
