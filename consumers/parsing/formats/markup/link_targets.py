"""Links as parsers find them: which targets are documents, and where in a block a link stands."""

import re
from collections.abc import Iterable
from html import unescape
from urllib.parse import unquote

from consumers.splitting import PlacedLink
from consumers.types import Link

_NO_DOCUMENT = re.compile(r"(?:mailto|tel|data|javascript|sms):|\(\(", re.IGNORECASE)
"""How targets begin that are no documents."""
_MEDIA = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|avif|bmp|ico|heic|tiff?|mp[34]|m4a|wav|ogg|flac|webm|mov|mkv|3gp)\Z", re.IGNORECASE
)
MAX_TARGET_CHARS = 2_000
MAX_LINK_TEXT_CHARS = 300


def link_to(target: str, text: str) -> Link | None:
    """The link with this target, which may have a fragment. None for one within the document, for pictures, and for what is no
    document."""
    target, _, heading = unescape(target).strip().partition("#")
    if not target or len(target) > MAX_TARGET_CHARS or _NO_DOCUMENT.match(target) or _MEDIA.search(target):
        return None
    return Link(target, unquote(heading)[:MAX_LINK_TEXT_CHARS], " ".join(text.split())[:MAX_LINK_TEXT_CHARS])


def is_media(target: str) -> bool:
    """Whether a target is a picture, a sound or a film by its name."""
    return _MEDIA.search(target) is not None


def place_links(links: Iterable[Link], text: str) -> list[PlacedLink]:
    """Links in their order, each where its words stand in the block's text next; at the last place if they do not."""
    placed, at = [], 0
    for link in links:
        at = max(text.find(link.text, at), at)
        placed.append(PlacedLink(at, link))
    return placed
