"""Outlook's winmail.dat: the body and the files of a message in one attachment ([MS-OXTNEF])."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from consumers.omissions import Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.mail.outlook_body import add_body, encoding_of
from consumers.parsing.limits import Damaged, Limits
from consumers.parsing.outline import Outline
from consumers.splitting import Attachment, ParsedText

_HEADER_BYTES = 6
_SUBJECT, _BODY, _MESSAGE_PROPERTIES, _CODE_PAGE = 0x18004, 0x2800C, 0x69003, 0x69007
_NEXT_ATTACHMENT, _TITLE, _DATA, _ATTACHMENT_PROPERTIES = 0x69002, 0x18010, 0x6800F, 0x69005
_PROPERTY_SUBJECT, _PROPERTY_BODY, _PROPERTY_RTF, _PROPERTY_PAGE = 0x0037, 0x1000, 0x1009, 0x1013
_LONG_NAME, _ATTACHED_DATA = 0x3707, 0x3701
_FOUR_BYTES, _EIGHT_BYTES = (0x0002, 0x0003, 0x0004, 0x000A, 0x000B), (0x0005, 0x0006, 0x0007, 0x0014, 0x0040)
_SIZES = {**dict.fromkeys(_FOUR_BYTES, 4), **dict.fromkeys(_EIGHT_BYTES, 8), 0x0048: 16}
"""Size in bytes of a value of each fixed-size type, with padding."""
_OBJECT, _UNICODE, _MANY, _NAMED, _NAMED_BY_TEXT = 0x000D, 0x001F, 0x1000, 0x8000, 1
_INTERFACE_BYTES = 16
_LEVELS = (1, 2)
_Properties = dict[int, tuple[int, bytes]]
"""Properties by number: (type, first value)."""


@dataclass(slots=True)
class _File:
    name: str = ""
    data: bytes = b""


@dataclass(slots=True)
class _Message:
    encoding: str = "cp1252"
    subject: str = ""
    plain: str = ""
    properties: _Properties = field(default_factory=dict)
    files: list[_File] = field(default_factory=list)


def parse_tnef(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    message = _Message()
    try:
        for number, value in _attributes(data):
            _apply(message, number, value)
    except struct.error as error:
        raise Damaged("damaged: it is cut short; ask for the message again") from error
    outline = Outline(limits.text_chars, omissions)
    found = message.properties
    plain = _text(found, _PROPERTY_BODY, message.encoding) or message.plain
    page = found.get(_PROPERTY_PAGE, (0, b""))[1]
    add_body(outline, plain, page, found.get(_PROPERTY_RTF, (0, b""))[1], limits)
    subject = _text(found, _PROPERTY_SUBJECT, message.encoding) or message.subject
    if not outline.blocks:
        outline.text(subject)
    files = (Attachment(each.name or "attachment", each.data) for each in message.files)
    return ParsedText(outline.done(), " ".join(subject.split()), {}, tuple(files), tuple(outline.pictures))


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields (number, value) of each attribute; ignores the checksums. Stops at the first byte that is no level."""
    at = _HEADER_BYTES
    while at < len(data) and data[at] in _LEVELS:
        _, number, length = struct.unpack_from("<BII", data, at)
        at += 9
        if at + length > len(data):
            raise struct.error
        yield number, data[at : at + length]
        at += length + 2


def _apply(message: _Message, number: int, value: bytes) -> None:
    if number == _CODE_PAGE and len(value) >= 4:
        message.encoding = encoding_of(struct.unpack_from("<I", value)[0])
    elif number == _SUBJECT:
        message.subject = _decoded(value, message.encoding)
    elif number == _BODY:
        message.plain = _decoded(value, message.encoding)
    elif number == _MESSAGE_PROPERTIES:
        message.properties = _properties(value)
    elif number == _NEXT_ATTACHMENT:
        message.files.append(_File())
    elif message.files and number == _TITLE:
        message.files[-1].name = message.files[-1].name or _decoded(value, message.encoding)
    elif message.files and number == _DATA:
        message.files[-1].data = value
    elif message.files and number == _ATTACHMENT_PROPERTIES:
        found = _properties(value)
        message.files[-1].name = _text(found, _LONG_NAME, message.encoding) or message.files[-1].name
        kind, data = found.get(_ATTACHED_DATA, (0, b""))
        # An object begins with the identifier of its interface.
        message.files[-1].data = message.files[-1].data or (data[_INTERFACE_BYTES:] if kind == _OBJECT else data)


def _properties(data: bytes) -> _Properties:
    """Returns the properties of a message or of an attachment (2.1.3.4)."""
    found: _Properties = {}
    [count] = struct.unpack_from("<I", data)
    at = 4
    for _ in range(count):
        kind, number = struct.unpack_from("<HH", data, at)
        at += 4
        if number >= _NAMED:
            [named] = struct.unpack_from("<I", data, at + 16)
            [length] = struct.unpack_from("<I", data, at + 20)
            at += 24 + (_padded(length) if named == _NAMED_BY_TEXT else 0)
        size = _SIZES.get(kind & ~_MANY)
        values = 1
        if kind & _MANY or size is None:
            [values] = struct.unpack_from("<I", data, at)
            at += 4
        for index in range(values):
            length = size or 0
            if size is None:
                [length] = struct.unpack_from("<I", data, at)
                at += 4
            if at + length > len(data):
                raise struct.error
            if index == 0:
                found[number] = kind & ~_MANY, data[at : at + length]
            at += _padded(length)
    return found


def _padded(length: int) -> int:
    return (length + 3) // 4 * 4


def _text(properties: _Properties, number: int, encoding: str) -> str:
    kind, value = properties.get(number, (0, b""))
    return _decoded(value, "utf-16-le" if kind == _UNICODE else encoding)


def _decoded(value: bytes, encoding: str) -> str:
    return clean_text(value.decode(encoding, "replace").rstrip("\0"))
