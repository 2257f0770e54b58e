"""Evernote's exports (.enex): each note is a document; the files in a note are its attachments."""

import base64
import binascii
import io
from collections.abc import Iterator
from typing import Any

from lxml import etree

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.markup.html_text import HtmlWalk
from consumers.parsing.formats.markup.html_tree import tree
from consumers.parsing.formats.registry import BY_MIME_TYPE
from consumers.parsing.limits import Damaged, Limits
from consumers.parsing.outline import Outline
from consumers.splitting import Attachment, ParsedText

Element = Any
_KEYS = {"created": "created", "updated": "modified", "author": "author", "source-url": "source_url"}
"""Elements of a note that become metadata, with their metadata keys."""
_READ = frozenset((*_KEYS, "title", "content", "tag", "data", "mime", "file-name"))


def split_notes(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields (title, content) of each note. Raises Unreadable if there is no note."""
    found = False
    try:
        options = {"resolve_entities": False, "no_network": True, "recover": True, "huge_tree": True}
        for _, note in etree.iterparse(io.BytesIO(data), events=("end",), tag="note", **options):
            found = True
            yield _text(note.find("title")), etree.tostring(note, encoding="utf-8", with_tail=False)
            note.clear()
    except etree.XMLSyntaxError as error:
        raise Damaged(f"damaged: {error}; export the notes again") from error
    if not found:
        raise Damaged("damaged: it contains no note; export the notes again")


def parse_note(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    note = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
    outline = Outline(limits.text_chars, omissions)
    content = note.findtext("content") or ""
    page = tree(content.encode("utf-8", "replace"), omissions) if content.strip() else None
    if page is not None:
        _prepare(page, omissions)
        HtmlWalk(outline, lines=False).run(page)
    title = _text(note.find("title"))
    if not outline.blocks:
        outline.text(title)
    metadata: dict[str, Any] = {}
    if tags := [_text(tag) for tag in note.iterfind("tag")]:
        metadata["tags"] = tags
    for node in note.iter(etree.Element):
        if key := _KEYS.get(node.tag):
            metadata.setdefault(key, _text(node)[:1000])
        elif not len(node) and node.tag not in _READ and (text := _text(node)):
            omissions.add(OmissionKind.METADATA, text)
    attachments = tuple(_attachment(resource) for resource in note.iterfind("resource"))
    return ParsedText(outline.done(), title, metadata, attachments, tuple(outline.pictures))


def _prepare(page: Element, omissions: Omissions) -> None:
    """Turns check boxes into text, and reports encrypted text."""
    for box in page.iter("en-todo"):
        box.tag, box.text = "span", f"[{'x' if box.get('checked') == 'true' else ' '}] {box.text or ''}"
    for secret in page.iter("en-crypt"):
        omissions.add(OmissionKind.EMBEDDED, f"encrypted text {secret.get('hint') or ''}")
        secret.text = None


def _attachment(resource: Element) -> Attachment:
    mime = _text(resource.find("mime"))
    name = _text(resource.find("resource-attributes/file-name"))
    format = BY_MIME_TYPE.get(mime)
    name = name or (f"attachment.{format.endings[0]}" if format is not None else mime or "attachment")
    try:
        data = base64.b64decode(resource.findtext("data") or "")
    except (binascii.Error, ValueError):
        data = b""
    return Attachment(name, data)


def _text(node: Element | None) -> str:
    return "" if node is None else " ".join(clean_text("".join(node.itertext())).split())
