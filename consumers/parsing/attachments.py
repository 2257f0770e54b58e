"""Attachments: files inside a document. They become separate documents.

An attachment has the URI `FILE#<n>/<name>` (`FILE#<document>/<n>/<name>` if the containing document is itself a part of a
file). `n` is the attachment's number in the containing document, from 1. The first passage of the containing document links to
the attachment.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.limits import Limits
from consumers.parsing.own_date import published_at
from consumers.part_uri import key_in_uri, part_uri
from consumers.splitting import Attachment, ParsedText, PlacedLink, TextBlock
from consumers.types import Link, ParsedDocument

_MAX_ATTACHMENTS = 1000
_NOT_READ = (FailureCode.NOT_A_DOCUMENT, FailureCode.ARCHIVE, FailureCode.NEEDS_OCR)
"""Codes of files that are no documents, such as pictures without text. Such an attachment becomes an entry in the containing
document's `left_out`. All other attachments become documents, even if they cannot be parsed."""

ParsePart = Callable[[bytes, bytes, str], Iterator[ParsedDocument]]
"""Yields the documents of a part of a file. Arguments: the part's content, its name (which decides the format), its URI."""


@dataclass(frozen=True, slots=True)
class ReadableAttachment:
    """An attachment that consists of one or more documents. `metadata` describes the attachment."""

    uri: str
    name: str
    documents: Iterator[ParsedDocument]
    metadata: Mapping[str, Any] = field(default_factory=dict)


def read_attachments(
    attachments: Sequence[Attachment], uri: str, depth: int, limits: Limits, omissions: Omissions, parse: ParsePart
) -> list[ReadableAttachment]:
    """Returns the attachments of `uri` that are documents. Reports other attachments to `omissions`.

    Parses the first document of each attachment; further documents are parsed when the iterators are consumed.
    """
    found = []
    for number, attachment in enumerate(attachments[:_MAX_ATTACHMENTS], 1):
        own_uri = part_uri(uri, f"{number}/{key_in_uri(attachment.name)}")
        name = attachment.name.replace("/", "_").encode("utf-8", "replace")
        is_read = attachment.data and depth < limits.attachment_depth
        documents = parse(attachment.data, name, own_uri) if is_read else iter(())
        first = next(documents, None)
        if first is None or (first.skipped and first.uri == own_uri and first.code in _NOT_READ):
            omissions.add(OmissionKind.ATTACHMENT, _described(attachment))
            continue
        metadata = {"description": attachment.description} if attachment.description else {}
        found.append(ReadableAttachment(own_uri, attachment.name, chain((first,), documents), metadata))
    for attachment in attachments[_MAX_ATTACHMENTS:]:
        omissions.add(OmissionKind.TOO_LARGE, f"attachment {_described(attachment)}")
    return found


def with_attachment_links(
    blocks: tuple[TextBlock, ...], attachments: Sequence[ReadableAttachment]
) -> tuple[TextBlock, ...]:
    """Returns the blocks of a document; the first block gets links to the attachments."""
    if not blocks:
        return blocks
    links = (PlacedLink(0, Link(f"#{each.uri.partition('#')[2]}", text=each.name)) for each in attachments)
    return replace(blocks[0], links=(*blocks[0].links, *links)), *blocks[1:]


def attachment_context(parsed: ParsedText, title: str) -> dict[str, Any]:
    """Returns the metadata that a document gives to its attachments: its title, sender and date.

    `title` is used if the document has none. An attachment's own metadata take precedence.
    """
    context: dict[str, Any] = {"attached_to": parsed.title or title}
    context |= {key: parsed.metadata[key] for key in ("from", "date") if key in parsed.metadata}
    if (published := published_at(parsed.metadata)) is not None:
        context["published_at"] = published
    return context


def _described(attachment: Attachment) -> str:
    return f"{attachment.name} ({attachment.description})" if attachment.description else attachment.name
