"""Mailboxes (.mbox): many e-mails in one file, each under its subject."""

import re

from consumers.failure_codes import FailureCode
from consumers.omissions import Omissions
from consumers.parsing.formats.mail.internet_message import header, parse_message, read_message
from consumers.parsing.formats.registry import MAILBOX_LINE
from consumers.parsing.limits import Limits, Unreadable
from consumers.parsing.outline import Outline
from consumers.splitting import ParsedText

_SEPARATOR = re.compile(rb"(?:\A|(?<=\n)\r?\n)" + MAILBOX_LINE)
"""Behind a blank line, or at the beginning."""
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
"""A line of a message that would be taken for a separator."""


def parse_mailbox(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    outline, count = Outline(limits.text_chars, omissions), 0
    for part in _SEPARATOR.split(data):
        if part.strip():
            count += 1
            message = parse_message(_QUOTED.sub(rb"\1", part))
            outline.heading(1, header(message, "Subject") or f"Message {count}")
            read_message(message, outline, limits, depth=1)
    blocks = outline.done()
    if not blocks:
        raise Unreadable("a mailbox without messages; export it again, or exclude it", FailureCode.DAMAGED)
    return ParsedText(blocks, "", {"messages": count})
