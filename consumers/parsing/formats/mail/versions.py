"""Chooses between the plain and HTML versions of a message's body: plain, unless the HTML version has clearly more
words.

Some programs write only part of the message or "your e-mail program does not show HTML" into the plain version.
"""

import re

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.outline import Outline

_WORD = re.compile(r"\w{2,}")
_MIN_SHARE = 0.8
"""Share of the HTML version's words that the plain version must have."""


def has_most_words(plain: str, rich: str) -> bool:
    """Whether the plain version has nearly all the words of the HTML version."""
    words = set(_WORD.findall(rich.casefold()))
    return len(words & set(_WORD.findall(plain.casefold()))) >= _MIN_SHARE * len(words)


def text_of(outline: Outline) -> str:
    """Returns the text of a version, for comparisons."""
    return "\n".join(" ".join((*block.headings, block.text)) for block in outline.done())


def report_version(unread: str, read: str, omissions: Omissions) -> None:
    """Reports the words of the version `unread` that the parsed version `read` does not contain."""
    known = set(_WORD.findall(read.casefold()))
    only = [word for word in dict.fromkeys(_WORD.findall(unread)) if word.casefold() not in known]
    if only:
        omissions.add(OmissionKind.ALTERNATIVE, " ".join(only))
