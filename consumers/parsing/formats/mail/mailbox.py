"""Mailboxes (.mbox, RFC 4155; the folders of Thunderbird): many e-mails in one file."""

import re
from collections.abc import Iterator

from consumers.parsing.formats.registry import MAILBOX_LINE

_SEPARATOR = re.compile(rb"(?:\A|(?<=\n)\r?\n)" + MAILBOX_LINE)
"""The separator follows a blank line or is at the beginning of the file."""
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
"""A line of a message that begins with "From ". A mailbox escapes it with ">" so that it is not a separator."""
_HEADERS_WITHIN = 1 << 16
_MESSAGE_ID = re.compile(rb"^message-id:\s*<?([^\s<>]{1,200})", re.IGNORECASE | re.MULTILINE)
_MOZILLA_STATUS = re.compile(rb"^X-Mozilla-Status:\s*([0-9A-Fa-f]{1,8})\r?$", re.MULTILINE)
_EXPUNGED = 0x0008
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")


def split_mailbox(data: bytes) -> Iterator[bytes]:
    """Yields the messages, with the mailbox's ">" escapes removed."""
    for part in _SEPARATOR.split(data):
        if part.strip():
            yield _QUOTED.sub(rb"\1", part)


def message_key(message: bytes) -> str:
    """Returns the message's Message-ID, or ""."""
    found = _MESSAGE_ID.search(_headers(message))
    return found[1].decode("utf-8", "replace") if found else ""


def is_deleted(message: bytes) -> bool:
    """Whether Thunderbird has marked the message as deleted; it removes the message from the file later."""
    found = _MOZILLA_STATUS.search(_headers(message))
    return found is not None and bool(int(found[1], 16) & _EXPUNGED)


def _headers(message: bytes) -> bytes:
    start = message[:_HEADERS_WITHIN]
    end = _BLANK_LINE.search(start)
    return start[: end.start()] if end else start
