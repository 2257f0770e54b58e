"""Makes text from documents and from the model safe for a client that renders it as Markdown.

Rendering must not make the client send a request. So images become visible links, HTML becomes text, and links lead only to
http, https or mailto addresses.

Every rule depends on a few characters only, and applies inside and outside of code, because renderers disagree about where code
ends. So an answer has the same text whether it is sent in pieces or at once.
"""

import re
from typing import Final

_LINK_STARTS: Final = ("http://", "https://", "mailto:")
_DANGEROUS: Final = re.compile(
    r"(?<!\\)(?P<escapes>\\*)(?:(?P<image>!)(?=\[)|(?P<tag><)(?=[A-Za-z/!?])|(?<![/A-Za-z0-9])(?P<host>//)(?=[^\s/]))"
    r"|(?<=\])(?:(?P<link>\()(?!https?://|mailto:)|(?P<definition>:))",
    re.IGNORECASE,
)
_KEPT_SCHEME: Final = re.compile(r"(?:^|[^A-Za-z0-9+.-])(?:https?|file|kafka|s3):\Z", re.IGNORECASE)
_SCHEME_CHARS: Final = 8
_UNDECIDED: Final = re.compile(r"(?<!\\)\\*(?:[!<]|(?<!/)/+)?\Z")
"""Matches characters at the end of a text that the next character may turn into markup."""
_UNDECIDED_LINK: Final = re.compile(r"(?<=\])\((\S{0,8})\Z")


def safe_markdown(text: str, finished: bool = True) -> str:
    """Returns `text` without Markdown or HTML that makes a renderer send a request, or that links elsewhere than http(s) or
    mailto.

    If the text is not `finished`, returns the part that no continuation can change: a prefix of the result of every longer
    text.
    """
    end = len(text) if finished else _decided(text)
    out: list[str] = []
    done = 0
    for found in _DANGEROUS.finditer(text):
        if found.start() >= end:
            break
        out += text[done : found.start()], _harmless(found)
        done = found.end()
    return "".join([*out, text[done:end]])


def escape_markdown(text: str) -> str:
    """Returns `text` escaped as one line of Markdown that displays it literally; for titles and names."""
    return safe_markdown(re.sub(r"[\\`*_\[\]<>&!|~]", r"\\\g<0>", " ".join(text.split())))


def _harmless(found: re.Match[str]) -> str:
    escapes = found["escapes"] or ""
    escaped = len(escapes) % 2 == 1
    if found["tag"]:
        return f"{escapes[1:] if escaped else escapes}&lt;"
    if escaped or (found["host"] and not escapes and _has_kept_scheme(found)):
        return found[0]
    return f"{escapes}\\{found[0][len(escapes) :]}"


def _has_kept_scheme(found: re.Match[str]) -> bool:
    start = found.start("host")
    return _KEPT_SCHEME.search(found.string[max(0, start - _SCHEME_CHARS) : start]) is not None


def _decided(text: str) -> int:
    """Returns the length of the part of an unfinished text whose meaning no continuation can change."""
    link = _UNDECIDED_LINK.search(text)
    if link is not None and any(start.startswith(link[1].lower()) for start in _LINK_STARTS):
        return link.start()
    undecided = _UNDECIDED.search(text)
    assert undecided is not None
    return undecided.start()
