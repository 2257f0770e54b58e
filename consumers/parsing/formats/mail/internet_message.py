"""E-mail (.eml): its headers, its body, and what is attached to it as text."""

from collections.abc import Iterator
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import cast

from consumers.failure_codes import FailureCode
from consumers.omissions import Omissions
from consumers.parsing.decoding import clean_text, decode
from consumers.parsing.file_name import ending_of
from consumers.parsing.formats.csv import parse_csv
from consumers.parsing.formats.markup.markdown import parse_markdown
from consumers.parsing.formats.registry import BY_ENDING, BY_MIME_TYPE, CSV, HTML, MARKDOWN
from consumers.parsing.limits import Limits, NotADocument, Unreadable
from consumers.parsing.outline import Outline
from consumers.splitting import ParsedText, TextBlock, paragraphs

_HEADERS = ("From", "To", "Cc", "Date")
_DEEPEST = 4
_MOST_PARTS = 1000


def parse_mail(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    message = parse_message(data)
    outline = Outline(limits.text_chars, omissions)
    attachments = read_message(message, outline, limits)
    blocks = outline.done()
    if not blocks:
        raise Unreadable(
            "not an e-mail that can be read: neither headers nor a body; save it again as .eml", FailureCode.DAMAGED
        )
    metadata: dict[str, object] = {name.lower(): value for name in _HEADERS if (value := header(message, name))}
    if identity := header(message, "Message-ID"):
        metadata["message_id"] = identity
    if attachments:
        metadata["attachments"] = attachments[:100]
    return ParsedText(blocks, header(message, "Subject"), metadata)


def parse_message(data: bytes) -> EmailMessage:
    # The modern policy parses each header's grammar when it is read, which damaged headers can make fail.
    return BytesParser(policy=policy.default).parsebytes(data)


def read_message(message: EmailMessage, outline: Outline, limits: Limits, depth: int = 0) -> list[str]:
    """Takes a message into `outline`, below headings of level `depth`; returns the names of what is attached."""
    names: list[str] = []
    _message(message, outline, limits, names, [_MOST_PARTS], depth)
    return names


def header(message: EmailMessage, name: str) -> str:
    """One line, "" where there is none."""
    try:
        value = message.get(name)
        return " ".join(clean_text(str(value)).split())[:2000] if value is not None else ""
    except Exception:  # noqa: BLE001 - the standard library's header grammar raises many kinds on damaged headers
        return ""


def _message(
    message: EmailMessage, outline: Outline, limits: Limits, names: list[str], budget: list[int], depth: int
) -> None:
    lines = [f"{name}: {value}" for name in _HEADERS if (value := header(message, name))]
    outline.text("\n".join(lines))
    body = _preferred(message)
    for part in _leaves(message, budget):
        if part is body:
            _body(part, outline, limits)
            continue
        name = clean_text(part.get_filename() or "")
        if part.get_content_type() == "message/rfc822" and depth < _DEEPEST:
            for inner in cast("list[EmailMessage]", part.get_payload()):
                outline.heading(depth + 1, header(inner, "Subject") or "Attached message")
                _message(inner, outline, limits, names, budget, depth + 1)
        elif part.is_attachment() or name:
            names.append(name or part.get_content_type())
            if part.get_content_maintype() == "text":
                outline.heading(depth + 1, name or "Attachment")
                _body(part, outline, limits)


def _preferred(message: EmailMessage) -> EmailMessage | None:
    try:
        return cast("EmailMessage | None", message.get_body(("plain", "html")))
    except Exception:  # noqa: BLE001 - get_body walks untrusted structure and fails on odd ones with whatever comes up
        return None


def _leaves(message: EmailMessage, budget: list[int]) -> Iterator[EmailMessage]:
    """Parts that hold content, in order; an attached message counts as one. A stack: parts nest as deep as they like."""
    stack = [message]
    while stack and budget[0] > 0:
        budget[0] -= 1
        part = stack.pop()
        payload = part.get_payload()
        if isinstance(payload, list) and part.get_content_type() != "message/rfc822":
            stack.extend(reversed(cast("list[EmailMessage]", payload)))
        else:
            yield part


def _body(part: EmailMessage, outline: Outline, limits: Limits) -> None:
    content = _content(part)
    format = BY_MIME_TYPE.get(part.get_content_type())
    by_name = BY_ENDING.get(ending_of((part.get_filename() or "").encode("utf-8", "replace")))
    if format is HTML:
        from consumers.parsing.formats.markup.html import tree
        from consumers.parsing.formats.markup.html_text import walk

        root = tree(content.encode("utf-8", "replace"))
        if root is not None:
            walk(root, outline, lines=False)
        return
    blocks: tuple[TextBlock, ...]
    if CSV in (format, by_name):
        blocks = parse_csv(content.encode("utf-8", "replace"), limits, outline.omissions).blocks
    elif MARKDOWN in (format, by_name):
        blocks = parse_markdown(content.encode("utf-8", "replace"), limits, outline.omissions).blocks
    else:
        blocks = tuple(paragraphs(content))
    for block in blocks:
        outline.text(block.text, block.joint, row=block.row)


def _content(part: EmailMessage) -> str:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    charset = part.get_content_charset()
    if charset:
        try:
            return clean_text(data.decode(charset, "replace"))
        except LookupError:
            pass
    try:
        return decode(data)
    except NotADocument:
        return ""
