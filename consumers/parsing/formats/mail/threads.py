"""Threads of messages: the message that a message answers is the target of a link.

The target is a `mid:` address (RFC 2392) of the other message's Message-ID. `In-Reply-To` names it, else the last of
`References` (RFC 5322, section 3.6.4).
"""

import re
from urllib.parse import quote

from consumers.splitting import PlacedLink
from consumers.types import Link

_IDENTITY = re.compile(r"<([^\s<>]{1,900})>")
_SAFE = "!$&'()*+,;=@~"
"""Characters that a `mid:` address contains as they are, besides letters, digits and `-._`."""


def answered_message(in_reply_to: str, references: str) -> tuple[PlacedLink, ...]:
    """The link to the message that is answered, in the first passage; empty if the headers name none."""
    found = _IDENTITY.findall(in_reply_to)[:1] or _IDENTITY.findall(references)[-1:]
    return tuple(PlacedLink(0, Link(f"mid:{quote(identity, safe=_SAFE)}", text="In-Reply-To")) for identity in found)
