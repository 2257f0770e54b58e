"""Web pages in one MIME file (.mhtml, RFC 2557), as saved by browsers and Confluence ("Export to Word")."""

import posixpath
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from functools import partial
from itertools import islice
from urllib.parse import urljoin

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.embedded_data import embedded_picture
from consumers.parsing.formats.mail.internet_message import header, parse_message, payload_of
from consumers.parsing.formats.markup.html import parse_html
from consumers.parsing.limits import Damaged, Limits
from consumers.parsing.outline import Outline
from consumers.splitting import ParsedText

_MAX_PARTS = 1000
_WITHOUT_TEXT = ("text/css", "text/javascript", "application/javascript", "application/x-javascript")


def parse_web_archive(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    """Parses the page and its frames. The first HTML part is the page."""
    message = parse_message(data)
    pages: list[ParsedText] = []
    images = _Images(message)
    for number, part in enumerate(message.walk()):
        if number >= _MAX_PARTS:
            omissions.add(OmissionKind.TOO_LARGE, f"parts after the first {_MAX_PARTS:,}")
            break
        kind = part.get_content_type()
        if part.is_multipart():
            continue
        if kind in ("text/html", "application/xhtml+xml"):
            pages.append(parse_html(_content(part), limits, omissions, partial(images.image, _address(part))))
        elif not kind.startswith("image/") and kind not in _WITHOUT_TEXT:
            omissions.add(OmissionKind.EMBEDDED, _address(part) or kind)
    if not pages:
        raise Damaged("an archive of a web page without a page in it; save the page again")
    outline = Outline(limits.text_chars, omissions)
    for page in pages:
        outline.include(page, 1)
    blocks = outline.done()
    for name, image in images.unused():
        outline.picture(image, name)
    metadata, subject = pages[0].metadata, header(message, "Subject")
    if subject and subject != pages[0].title:
        metadata = {**metadata, "subject": subject}
    return ParsedText(blocks, pages[0].title or subject, metadata, pictures=tuple(outline.pictures))


class _Images:
    """The pictures in the archive, by their addresses (RFC 2557, 5) and content ids."""

    def __init__(self, message: EmailMessage) -> None:
        self._parts: dict[str, EmailMessage] = {}
        self._used: set[EmailMessage] = set()
        for number, part in enumerate(islice(message.walk(), _MAX_PARTS)):
            if part.get_content_maintype() == "image":
                self._parts[_address(part) or f"part {number}"] = part
                if identity := header(part, "Content-ID"):
                    self._parts[f"cid:{identity.strip('<>')}"] = part

    def image(self, page: str, address: str) -> Callable[[], bytes] | None:
        """Returns a function that reads the picture at an address on the page, or None if the archive has no such picture."""
        part = self._parts.get(address) or self._parts.get(urljoin(page, address))
        if part is None:
            return embedded_picture(address)
        self._used.add(part)
        return partial(payload_of, part)

    def unused(self) -> Iterator[tuple[str, Callable[[], bytes]]]:
        """Yields (name, function that reads the picture) of each picture that no page shows, such as a background."""
        for address, part in self._parts.items():
            if part not in self._used:
                self._used.add(part)
                yield posixpath.basename(address), partial(payload_of, part)


def _address(part: EmailMessage) -> str:
    return header(part, "Content-Location")


def _content(part: EmailMessage) -> bytes:
    """Returns the page's bytes as UTF-8 if the declared charset decodes them, otherwise unchanged."""
    data = payload_of(part)
    charset = part.get_content_charset()
    try:
        return data.decode(charset or "utf-8").encode()
    except (LookupError, UnicodeDecodeError):
        return data
