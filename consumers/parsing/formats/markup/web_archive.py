"""Web pages in one MIME file (.mhtml, RFC 2557), as saved by browsers and Confluence ("Export to Word")."""

from email.message import EmailMessage

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.formats.mail.internet_message import parse_message
from consumers.parsing.formats.markup.html import parse_html
from consumers.parsing.limits import Limits, Unreadable
from consumers.parsing.outline import Outline
from consumers.splitting import ParsedText

_MOST_PARTS = 1000


def parse_web_archive(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    """Parse the page and its frames. The first HTML part is the page."""
    message = parse_message(data)
    pages: list[ParsedText] = []
    for number, part in enumerate(message.walk()):
        if number >= _MOST_PARTS:
            omissions.add(OmissionKind.TOO_LARGE, f"parts after the first {_MOST_PARTS:,}")
            break
        kind = part.get_content_type()
        if part.is_multipart():
            continue
        if kind in ("text/html", "application/xhtml+xml"):
            pages.append(parse_html(_content(part), limits, omissions))
        elif kind.startswith("image/"):
            omissions.add(OmissionKind.PICTURE)
        elif kind not in ("text/css", "text/javascript", "application/javascript", "application/x-javascript"):
            omissions.add(OmissionKind.EMBEDDED, part.get("Content-Location") or kind)
    if not pages:
        raise Unreadable("an archive of a web page without a page in it; save the page again", FailureCode.DAMAGED)
    outline = Outline(limits.text_chars, omissions)
    for page in pages:
        outline.include(page.blocks, 1)
    return ParsedText(outline.done(), pages[0].title, pages[0].metadata)


def _content(part: EmailMessage) -> bytes:
    """Return the page's bytes as UTF-8 if the declared charset decodes them, otherwise unchanged."""
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    charset = part.get_content_charset()
    try:
        return data.decode(charset or "utf-8").encode()
    except (LookupError, UnicodeDecodeError):
        return data
