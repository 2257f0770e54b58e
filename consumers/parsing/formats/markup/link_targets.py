"""Decides which link targets are documents, and finds the position of each link in a block."""

import re
from collections.abc import Iterable
from html import unescape
from urllib.parse import unquote

from consumers.splitting import PlacedLink
from consumers.types import Link

_NO_DOCUMENT = re.compile(r"(?:mailto|tel|data|javascript|sms):|\(\(", re.IGNORECASE)
"""Beginnings of targets that are not documents."""
_MEDIA = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|avif|bmp|ico|heic|tiff?|mp[34]|m4a|wav|ogg|flac|webm|mov|mkv|3gp)\Z", re.IGNORECASE
)
MAX_TARGET_CHARS = 2_000
MAX_LINK_TEXT_CHARS = 300


def link_to(target: str, text: str) -> Link | None:
    """Returns the link with this target, which may have a fragment.

    Returns None for targets within the document, for media files, and for schemes that are not documents.
    """
    target, _, heading = unescape(target).strip().partition("#")
    if not target or len(target) > MAX_TARGET_CHARS or _NO_DOCUMENT.match(target) or _MEDIA.search(target):
        return None
    return Link(target, unquote(heading)[:MAX_LINK_TEXT_CHARS], " ".join(text.split())[:MAX_LINK_TEXT_CHARS])


def is_media(target: str) -> bool:
    """Whether a target is a picture, sound or film according to its ending."""
    return _MEDIA.search(target) is not None


def place_links(links: Iterable[Link], text: str) -> list[PlacedLink]:
    """Places each link at the next occurrence of its words in the block's text. Without an occurrence, the link gets the
    previous link's position."""
    placed, at = [], 0
    for link in links:
        at = max(text.find(link.text, at), at)
        placed.append(PlacedLink(at, link))
    return placed
