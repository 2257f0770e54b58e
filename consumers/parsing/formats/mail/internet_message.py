"""E-mail (.eml): headers, body and attachments.

Every text in the MIME structure (RFC 2046) is parsed, except versions of the body that another version makes redundant. A part
with a file name or with the disposition "attachment" is an attachment. A message inside the message counts as text.

A message links to the message that it answers. The link's target is a `mid:` address (RFC 2392) with the Message-ID of the
answered message, which is in `In-Reply-To`, else in the last entry of `References` (RFC 5322, section 3.6.4).
"""

import re
from collections.abc import Iterator
from email import policy
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.parser import BytesParser
from typing import cast
from urllib.parse import quote

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text, decode
from consumers.parsing.file_name import ending_of
from consumers.parsing.format_detection import detect_format
from consumers.parsing.formats.csv import parse_csv
from consumers.parsing.formats.document_format import DocumentFormat
from consumers.parsing.formats.mail.versions import has_most_words, report_version, text_of
from consumers.parsing.formats.markup.markdown import parse_markdown
from consumers.parsing.formats.registry import BY_ENDING, BY_MIME_TYPE, CSV, HTML, MARKDOWN, TEXT
from consumers.parsing.limits import Damaged, Limits, NotADocument
from consumers.parsing.outline import Outline
from consumers.splitting import Attachment, ParsedText, PlacedLink, TextBlock, paragraphs
from consumers.types import Link

_HEADERS = ("From", "To", "Cc", "Date")
_COUNT = re.compile(rb"(\d{1,10})[ \t]*\r?\n(?=[A-Za-z])")
"""The first line of a message in Apple Mail's format: the message's length in bytes."""
_RARE_HEADERS = ("Sender", "Reply-To", "Bcc", "Comments", "Keywords", "Organization")
"""Headers that are added only if their value does not occur in the values of `_HEADERS`."""
_MAX_LEVEL = 5
"""Deepest level of headings. Messages nested more deeply get a heading of this level."""
_MAX_PARTS = 1000
_MAX_NAMES = 100
_SIGNATURES = frozenset(
    (
        "application/pgp-signature", "application/pgp-keys", "application/pgp-encrypted", "application/pkcs7-signature",
        "application/x-pkcs7-signature",
    )
)  # fmt: skip
"""MIME types of signatures and keys, which contain no text for readers."""
_ENCRYPTED = re.compile(rb"\s*-----BEGIN PGP MESSAGE-----")

_IDENTITY = re.compile(r"<([^\s<>]{1,900})>")
_SAFE = "!$&'()*+,;=@~"
"""Characters that a `mid:` address contains unescaped, besides letters, digits and `-._`."""


def parse_mail(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    message = parse_message(_without_count(data))
    outline = Outline(limits.text_chars, omissions)
    reader = _Reader(outline, limits)
    reader.read(message)
    attachments = reader.attachments
    if not outline.blocks and attachments:
        outline.text(header(message, "Subject"))
    if not outline.done() and not attachments:
        raise Damaged("not an e-mail that can be read: neither headers nor a body; save it again as .eml")
    metadata: dict[str, object] = {name.lower(): value for name in _HEADERS if (value := header(message, name))}
    if identity := header(message, "Message-ID"):
        metadata["message_id"] = identity
    if attachments:
        metadata["attachments"] = [each.name for each in attachments[:_MAX_NAMES]]
    return ParsedText(outline.done(), header(message, "Subject"), metadata, tuple(attachments), tuple(outline.pictures))


def _without_count(data: bytes) -> bytes:
    """Returns the message of an .emlx file, without the preceding length and the list of flags after it."""
    counted = _COUNT.match(data)
    return data[counted.end() : counted.end() + int(counted[1])] if counted else data


def parse_message(data: bytes) -> EmailMessage:
    # The modern policy parses a header when it is accessed; damaged headers can raise there.
    return BytesParser(policy=policy.default).parsebytes(data)


def header(message: EmailMessage, name: str) -> str:
    """Returns a header's value on one line, or "" if the header is missing."""
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
    try:
        if not raw.isascii():  # RFC 6532 allows UTF-8; programs write other encodings too
            plain = decode(raw.encode("utf-8", "surrogateescape"))
            return _one_line(str(make_header(decode_header(plain))))
        value = message.get(name)
        return _one_line(str(value)) if value is not None else ""
    except Exception:  # noqa: BLE001 - the standard library's header grammar raises many kinds on damaged headers
        return _one_line(raw)


def _one_line(text: str) -> str:
    return " ".join(clean_text(text).split())[:2000]


class _Reader:
    """Adds messages to an outline. Pending parts are on a stack, because parts can nest without limit."""

    def __init__(self, outline: Outline, limits: Limits) -> None:
        self.outline = outline
        self.omissions = outline.omissions
        self.limits = limits
        self.attachments: list[Attachment] = []
        self.budget = _MAX_PARTS
        self.attached: set[EmailMessage] = set()
        """Messages attached to the message that is read."""
        self.compared = 0
        """Number of characters of all alternatives compared so far."""

    def read(self, message: EmailMessage) -> None:
        stack = [(message, 0)]
        self._head(message)
        while stack:
            part, depth = stack.pop()
            if self.budget <= 0:
                self.omissions.add(OmissionKind.TOO_LARGE, f"beyond {_MAX_PARTS:,} parts of a message", 1 + len(stack))
                return
            self.budget -= 1
            payload = part.get_payload()
            kind = part.get_content_type()
            if part is not message and part in self.attached:
                self.outline.heading(depth, header(part, "Subject") or "Attached message")
                self._head(part)
            if kind == "message/rfc822" and isinstance(payload, list):
                inner = cast("list[EmailMessage]", payload)
                self.attached.update(inner)
                stack += [(each, min(depth + 1, _MAX_LEVEL)) for each in reversed(inner)]
            elif isinstance(payload, list):
                members = self._members(kind, cast("list[EmailMessage]", payload))
                stack += [(member, depth) for member in reversed(members)]
            else:
                self._leaf(part, is_body=part is message and part.get_content_maintype() == "text")

    def _head(self, message: EmailMessage) -> None:
        lines = [f"{name}: {value}" for name in _HEADERS if (value := header(message, name))]
        shown = "\n".join(lines)
        lines += [
            f"{name}: {value}" for name in _RARE_HEADERS if (value := header(message, name)) and value not in shown
        ]
        answered = answered_message(header(message, "In-Reply-To"), header(message, "References"))
        self.outline.text("\n".join(lines), links=answered)

    def _members(self, kind: str, parts: list[EmailMessage]) -> list[EmailMessage]:
        """Returns the parts of a multipart message that must be parsed."""
        if kind == "multipart/alternative":
            return self._best_versions(parts)
        if kind == "message/delivery-status":  # blocks of fields, which the standard library parses as messages
            for block in parts:
                self.outline.text("\n".join(f"{name}: {_one_line(str(value))}" for name, value in block.items()))
            return []
        return parts

    def _best_versions(self, parts: list[EmailMessage]) -> list[EmailMessage]:
        """Returns the alternative to parse, or all alternatives if they are too large to compare."""
        texts = [(part, self._text_of(part)) for part in parts]
        if self.compared > self.limits.text_chars:
            return parts
        plain = next((each for each in texts if each[0].get_content_type() == "text/plain" and each[1]), None)
        rich = next((each for each in reversed(texts) if each[0].get_content_type() != "text/plain" and each[1]), None)
        chosen = rich if plain is None or (rich is not None and not has_most_words(plain[1], rich[1])) else plain
        if chosen is None:
            return parts
        for part, text in texts:
            if part is not chosen[0]:
                report_version(text, chosen[1], self.omissions)
                for leaf in _leaves(part):
                    if not _is_inline(leaf):
                        self._leaf(leaf)
        return [chosen[0]]

    def _text_of(self, part: EmailMessage) -> str:
        outline = Outline(self.limits.text_chars, Omissions())
        for leaf in _leaves(part):
            if _is_inline(leaf) and self.compared <= self.limits.text_chars:
                _text(leaf, outline, self.limits)
                self.compared += len(str(leaf.get_payload()))
        return text_of(outline)

    def _leaf(self, part: EmailMessage, is_body: bool = False) -> None:
        if is_body or _is_inline(part):
            _text(part, self.outline, self.limits)
            return
        kind = part.get_content_type()
        name, data = _name(part), payload_of(part)
        if not name and not data.strip():
            return
        about = _one_line(str(part.get("Content-Description", "")))
        if kind in _SIGNATURES or _ENCRYPTED.match(data):
            kind = kind if kind in _SIGNATURES else "encrypted message"
            self.omissions.add(OmissionKind.ATTACHMENT, f"{name or kind} ({about})" if about else name or kind)
            return
        format = BY_MIME_TYPE.get(kind)
        if format not in (None, TEXT) and ending_of(name.encode("utf-8", "replace")) not in BY_ENDING:
            name = f"{name or 'attachment'}.{format.endings[0]}"
        if charset := _charset(part):
            data = _in_utf8(name, data, charset)
        self.attachments.append(Attachment(name or kind, data, about))


def _in_utf8(name: str, data: bytes, charset: str) -> bytes:
    """Converts a text attachment to UTF-8, because attachments are parsed without the charset stated in the mail."""
    try:
        is_text = detect_format(name.encode("utf-8", "replace"), data) in (TEXT, CSV, MARKDOWN)
        return decode(data, charset).encode("utf-8", "replace") if is_text else data
    except NotADocument:
        return data


def _is_inline(part: EmailMessage) -> bool:
    """Whether a part that contains no parts is text of the message, not an attachment."""
    return part.get_content_maintype() == "text" and not part.is_attachment() and not _name(part)


def _leaves(part: EmailMessage) -> Iterator[EmailMessage]:
    """Yields the parts at and below `part` that contain no parts, in order. Visits at most `_MAX_PARTS` parts."""
    stack = [part]
    for _ in range(_MAX_PARTS):
        if not stack:
            return
        current = stack.pop()
        payload = current.get_payload()
        if isinstance(payload, list):
            stack.extend(reversed(cast("list[EmailMessage]", payload)))
        else:
            yield current


def _name(part: EmailMessage) -> str:
    try:
        return _one_line(part.get_filename() or "")
    except Exception:  # noqa: BLE001 - as in `header`
        return ""


def _text(part: EmailMessage, outline: Outline, limits: Limits) -> None:
    format = BY_MIME_TYPE.get(part.get_content_type())
    data = payload_of(part)
    if format is HTML:
        from consumers.parsing.formats.markup.html_text import add_page

        add_page(outline, data, _charset(part))
        return
    try:
        content = decode(data, _charset(part))
    except NotADocument:
        outline.omissions.add(OmissionKind.ATTACHMENT, _name(part) or f"{part.get_content_type()} that is no text")
        return
    for block in _blocks(content, format, outline, limits):
        outline.text(block.text, block.joint, row=block.row)


def _blocks(content: str, format: DocumentFormat | None, outline: Outline, limits: Limits) -> Iterator[TextBlock]:
    data = content.encode("utf-8", "replace")
    if format is CSV:
        yield from parse_csv(data, limits, outline.omissions).blocks
    elif format is MARKDOWN:
        yield from parse_markdown(data, limits, outline.omissions).blocks
    else:
        yield from paragraphs(content)


def payload_of(part: EmailMessage) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _charset(part: EmailMessage) -> str:
    try:
        return part.get_content_charset() or ""
    except Exception:  # noqa: BLE001 - as in `header`
        return ""


def answered_message(in_reply_to: str, references: str) -> tuple[PlacedLink, ...]:
    """Returns the link to the answered message, placed in the first passage; empty if the headers name no message."""
    found = _IDENTITY.findall(in_reply_to)[:1] or _IDENTITY.findall(references)[-1:]
    return tuple(PlacedLink(0, Link(f"mid:{quote(identity, safe=_SAFE)}", text="In-Reply-To")) for identity in found)
