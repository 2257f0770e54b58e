"""Detects a file's format from the first bytes of its text if the file's name has no ending or a wrong ending.

Some programs save web pages as .doc or .xls, or without an ending; mail programs store messages without an ending.
"""

import re

from consumers.parsing.formats.document_format import DocumentFormat
from consumers.parsing.formats.registry import (
    BY_ENDING,
    CSV,
    HTML,
    MAIL,
    MAILBOX,
    MAILBOX_LINE,
    OPENDOCUMENT,
    WEB_ARCHIVE,
    WIKI,
    XML,
)

_WITHIN = 8192
_OFFICE_ENDINGS = frozenset(
    ("doc", "dot", "docx", "docm", "xls", "xlt", "xlsx", "xlsm", "ppt", "pps", "pptx", "rtf", "odt", "ods")
)
_SHEET_ENDINGS = frozenset(("xls", "xlt", "xlsx", "xlsm", "ods"))
_LEAD = rb"(?:\s|<!--.{0,2000}?-->|<\?xml[^>]{0,200}\?>|<\?mso-[^>]{0,200}\?>)*"
_PAGE = re.compile(_LEAD + rb"<(?:!doctype\s+html|html[\s>]|head[\s>])", re.IGNORECASE | re.DOTALL)
_FRAGMENT = re.compile(
    _LEAD + rb"<(?:table|meta|style|body|div|p|h[1-6]|font|center|title)[\s>]", re.IGNORECASE | re.DOTALL
)
_FLAT_OPENDOCUMENT = re.compile(_LEAD + rb"<office:document[\s>]", re.DOTALL)
_XML = re.compile(rb"\s*<\?xml\s")
_HEADER = re.compile(rb"([A-Za-z][A-Za-z0-9_.-]{1,60}):[ \t]?[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*\r?\n")
_MAIL_HEADERS = frozenset(
    (
        b"from", b"to", b"subject", b"date", b"mime-version", b"message-id", b"received", b"return-path", b"content-type",
        b"delivered-to", b"reply-to", b"cc", b"x-mozilla-status", b"content-transfer-encoding",
    )
)  # fmt: skip
_ARCHIVE = re.compile(rb"^(?:Snapshot-Content-Location|Content-Location):", re.IGNORECASE | re.MULTILINE)
_DOKUWIKI = re.compile(rb"\s*(={5,6}) [^=\r\n]{1,200} \1[ \t]*(?:\r?\n|\Z)")
_APPLE = re.compile(rb"\d{1,10}[ \t]*\r?\n")
_MAILBOX = re.compile(MAILBOX_LINE + rb"(?:[A-Za-z][A-Za-z0-9_.-]{1,60}:|>From )")


def format_of_content(data: bytes, ending: str) -> DocumentFormat | None:
    """Returns the format that the first bytes determine; None if they do not determine it."""
    start = _plain(data[:_WITHIN])
    if _FLAT_OPENDOCUMENT.match(start):
        return OPENDOCUMENT
    is_office = ending in _OFFICE_ENDINGS
    if _PAGE.match(start) or (is_office and _FRAGMENT.match(start)):
        return HTML
    if (is_office or ending not in BY_ENDING) and _XML.match(start):
        return XML
    if _DOKUWIKI.match(start):
        return WIKI
    if _MAILBOX.match(start):
        return MAILBOX
    if mail := _mail_format(start, is_office):
        return mail
    if ending in _SHEET_ENDINGS and b"\t" in start.split(b"\n", 1)[0] and b"\x00" not in start:
        return CSV
    return None


def _mail_format(start: bytes, is_office: bool) -> DocumentFormat | None:
    """Returns MAIL or WEB_ARCHIVE if two or more mail headers come before the first blank line, otherwise None."""
    counted = _APPLE.match(start)
    at = counted.end() if counted else 0
    headers: dict[bytes, bytes] = {}
    while header := _HEADER.match(start, at):
        headers[header[1].lower()] = header[0].lower()
        at = header.end()
    ended = start[at : at + 1] in (b"\r", b"\n", b"") or at > _WITHIN // 2
    if (
        not ended
        or len(headers.keys() & _MAIL_HEADERS) < 2
        or headers.keys().isdisjoint((b"from", b"received", b"mime-version", b"message-id"))
    ):
        return None
    kind = headers.get(b"content-type", b"")
    is_page = b"multipart/related" in kind or b"text/html" in kind
    if is_page and b"mime-version" in headers and (is_office or b"to" not in headers) and _ARCHIVE.search(start):
        return WEB_ARCHIVE
    return MAIL


def _plain(start: bytes) -> bytes:
    """Returns the bytes without a byte order mark; UTF-16 is converted to UTF-8."""
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16-le" if start[:1] == b"\xff" else "utf-16-be"
        return start[2:].decode(encoding, "replace").encode("utf-8", "replace")
    return start.removeprefix(b"\xef\xbb\xbf")
