"""Threads: a message links to the message that it answers.

The link's target is a `mid:` address (RFC 2392) with the Message-ID of the answered message. The Message-ID is in
`In-Reply-To`, else in the last entry of `References` (RFC 5322, section 3.6.4).
"""

import re
from urllib.parse import quote

from consumers.splitting import PlacedLink
from consumers.types import Link

_IDENTITY = re.compile(r"<([^\s<>]{1,900})>")
_SAFE = "!$&'()*+,;=@~"
"""Characters that a `mid:` address contains unescaped, besides letters, digits and `-._`."""


def answered_message(in_reply_to: str, references: str) -> tuple[PlacedLink, ...]:
    """Returns the link to the answered message, placed in the first passage; empty if the headers name no message."""
    found = _IDENTITY.findall(in_reply_to)[:1] or _IDENTITY.findall(references)[-1:]
    return tuple(PlacedLink(0, Link(f"mid:{quote(identity, safe=_SAFE)}", text="In-Reply-To")) for identity in found)
