"""Which of two versions of a message's body is read: the plain one, unless that in HTML says clearly more.

Programs write "your e-mail program does not show HTML" in place of the plain version, or a part of the message.
"""

import re

from consumers.omissions import OmissionKind, Omissions

_WORD = re.compile(r"\w{2,}")
_ENOUGH = 0.8
"""Share of the rich version's words that the plain one must have."""


def says_enough(plain: str, rich: str) -> bool:
    """Whether the plain version has nearly all the words of the rich one."""
    words = set(_WORD.findall(rich.casefold()))
    return len(words & set(_WORD.findall(plain.casefold()))) >= _ENOUGH * len(words)


def report_version(unread: str, read: str, omissions: Omissions) -> None:
    """Reports a version that is not read, with the words that only it has, if there are any."""
    known = set(_WORD.findall(read.casefold()))
    only = [word for word in dict.fromkeys(_WORD.findall(unread)) if word.casefold() not in known]
    if only:
        omissions.add(OmissionKind.ALTERNATIVE, " ".join(only))
