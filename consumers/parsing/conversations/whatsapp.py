"""Chats that WhatsApp exports as text: one line per message, with its time and author."""

import re
from collections.abc import Iterator
from datetime import datetime

from consumers.parsing.conversations.days import Conversation, Message

_MARKS = str.maketrans("", "", "\u200e\u200f\u202a\u202b\u202c\ufeff")
"""Byte order marks, and marks of the writing direction, which WhatsApp writes before times and attachments."""
_LINE = re.compile(
    r"\[?(\d{1,4})[./-](\d{1,2})[./-](\d{1,4}),? (\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?[ \u202f\u00a0]?([AaPp]\.?[Mm]\.?)?"
    r"(?:\] | - )(?:([^:\n]{1,80}): )?(.*)"
)
_ATTACHED = re.compile(
    r"<(?:attached|Anhang|pièce jointe|adjunto|allegato|bijlage|anexado|załącznik): ([^>]{1,200})>|"
    r"<([^<>]{1,60} (?:omitted|weggelassen|ausgeschlossen|omis|omitido))>|"
    r"((?:image|video|audio|document|sticker|GIF|Contact card) omitted|(?:Bild|Video|Audio|Dokument|Sticker) weggelassen)|"
    r"([\w.-]{1,100}\.\w{2,5}) \([^()]{1,60}\)"
)
_FIRST_LINES = 20
_NAME = re.compile(r"(?:WhatsApp[- ]Chat[- ](?:with|mit|avec|con|-)[- ])(.+)", re.IGNORECASE)


def is_whatsapp(text: str) -> bool:
    """Whether at least half of the first lines are messages and at least two of them name an author."""
    lines = text.translate(_MARKS).split("\n", _FIRST_LINES)[:_FIRST_LINES]
    found = [match for line in lines if (match := _LINE.match(line))]
    return (
        len(found) * 2 >= len([line for line in lines if line.strip()]) and sum(1 for match in found if match[8]) >= 2
    )


def read_whatsapp(text: str, stem: str) -> Conversation:
    """Returns the chat. `stem` is the name of the file or folder."""
    named = _NAME.fullmatch(stem)
    name = named[1] if named else stem
    lines = text.translate(_MARKS).split("\n")
    matches = [_LINE.match(line) for line in lines]
    day_first = _day_first([match for match in matches if match])
    return Conversation(name, name, list(_messages(lines, matches, day_first)))


def _messages(lines: list[str], matches: list[re.Match[str] | None], day_first: bool) -> Iterator[Message]:
    author, sent, pending = "", None, list[str]()
    for line, match in zip(lines, matches, strict=True):
        if match is None:
            pending.append(line)
            continue
        if pending:
            yield _message(author, sent, pending)
        author, sent, pending = match[8] or "", _moment(match, day_first), [match[9]]
    if pending:
        yield _message(author, sent, pending)


def _message(author: str, sent: datetime | None, lines: list[str]) -> Message:
    text = "\n".join(lines).strip()
    attachments = tuple(next(filter(None, each.groups())) for each in _ATTACHED.finditer(text))
    return Message(author, _ATTACHED.sub("", text).strip(), sent, attachments)


def _day_first(matches: list[re.Match[str]]) -> bool:
    """Whether dates give the day before the month.

    A number above 12 must be the day. If no date has such a number, dates with slashes and AM or PM give the month
    first.
    """
    for match in matches:
        if len(match[1]) < 3 and int(match[1]) > 12:
            return True
        if int(match[2]) > 12:
            return False
    return not any(match[7] and "/" in match[0][:12] for match in matches[:50])


def _moment(match: re.Match[str], day_first: bool) -> datetime | None:
    first, second, third = int(match[1]), int(match[2]), int(match[3])
    if len(match[1]) == 4:
        year, month, day = first, second, third
    else:
        year = third if third > 99 else 2000 + third
        month, day = (second, first) if day_first else (first, second)
    hour = int(match[4])
    if match[7]:
        hour = hour % 12 + (12 if match[7][0] in "Pp" else 0)
    try:
        return datetime(year, month, day, hour, int(match[5]), int(match[6] or 0))
    except ValueError:
        return None
