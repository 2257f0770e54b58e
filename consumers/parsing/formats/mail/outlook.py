"""Outlook's .msg files by olefile: subject, people, body and attachments ([MS-OXMSG]). An attached message counts as
text."""

import io
import re
import struct
from datetime import UTC, datetime, timedelta
from typing import Any

import olefile

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.mail.internet_message import answered_message, header, parse_message
from consumers.parsing.formats.mail.outlook_body import add_body, encoding_of
from consumers.parsing.limits import Damaged, Limits
from consumers.parsing.outline import Outline
from consumers.splitting import Attachment, ParsedText

_SUBJECT, _SENDER, _SENDER_ADDRESS, _SENDER_SMTP = "0037", "0C1A", "0C1F", "5D01"
_TO, _CC, _BCC, _BODY, _HTML, _RTF, _MESSAGE_ID = "0E04", "0E03", "0E02", "1000", "1013", "1009", "1035"
_IN_REPLY_TO, _REFERENCES, _INTERNET_HEADERS = "1042", "1039", "007D"
_ATTACHMENT_NAME, _ATTACHMENT_SHORT_NAME, _ATTACHED = "3707", "3704", "3701"
_NAME, _ADDRESS, _SMTP_ADDRESS = "3001", "3003", "39FE"
"""Properties of a recipient ([MS-OXMSG] 2.2.1)."""
_RECIPIENTS = "__recip_version1.0_"
_SENT, _RECEIVED, _MESSAGE_CODE_PAGE, _INTERNET_CODE_PAGE = 0x0039, 0x0E06, 0x3FFD, 0x3FDE
_ASCII = 20127
_RECIPIENT_TYPE = 0x0C15
_TYPES = {1: "to", 2: "cc", 3: "bcc"}
_PROPERTIES = "__properties_version1.0"
_HEADER_BYTES, _ATTACHED_HEADER_BYTES, _RECIPIENT_HEADER_BYTES = 32, 24, 8
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_MAX_NAMES = 100
_MAX_DEPTH = 5
"""Maximum depth of attached messages; deeper messages are reported by name."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def parse_msg(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    try:
        with olefile.OleFileIO(io.BytesIO(data)) as file:
            outline = Outline(limits.text_chars, omissions)
            message = _Message(file, limits, outline)
            headers = message.read()
            if not outline.blocks:
                outline.text(message.subject)
            blocks, pictures = outline.done(), tuple(outline.pictures)
            return ParsedText(blocks, message.subject, headers, tuple(message.attachments), pictures)
    except OSError as error:
        raise Damaged(f"damaged: {error}; copy it again, or save it again") from error


class _Message:
    """The message of the file, or the attached message in `storage`.

    A property is a stream named after its number and type, or a 16-byte entry in a common stream.
    """

    def __init__(self, file: Any, limits: Limits, outline: Outline, storage: tuple[str, ...] = ()) -> None:
        self.omissions = outline.omissions
        self.outline = outline
        self.file = file
        self.limits = limits
        self.storage = storage
        self.attachments: list[Attachment] = []
        self.fixed = self._fixed_properties(_ATTACHED_HEADER_BYTES if storage else _HEADER_BYTES)
        pages = (_number(self.fixed.get(key, b"")) for key in (_MESSAGE_CODE_PAGE, _INTERNET_CODE_PAGE))
        self.encoding = encoding_of(next((page for page in pages if page not in (0, _ASCII)), 1252))
        self.subject = _CONTROL.sub("", " ".join(self._text(_SUBJECT).split()))[:2000]

    def read(self) -> dict[str, Any]:
        """Adds the message to the outline. Returns its metadata."""
        sender = self._text(_SENDER_SMTP) or self._text(_SENDER_ADDRESS)
        name = self._text(_SENDER)
        stated = {
            "from": _person(name, sender),
            "to": self._text(_TO),
            "cc": self._text(_CC),
            "bcc": self._text(_BCC),
            "date": self._date(),
        }
        for kind, people in self._recipients().items():  # the properties above contain only their names
            names = filter(None, (" ".join(each.split()) for each in stated[kind].split(";")))
            stated[kind] = "; ".join((*people.values(), *(each for each in names if each not in people)))
        sent = parse_message(self._text(_INTERNET_HEADERS).encode("utf-8", "replace"))
        for kind in ("from", *_TYPES.values()):
            known = header(sent, kind)
            if known and "@" not in stated[kind]:
                stated[kind] = known if stated[kind] in known else f"{stated[kind]}; {known}"
            elif not set(known.split()) <= set(stated[kind].split()):
                self.omissions.add_words(OmissionKind.METADATA, known)
        headers: dict[str, Any] = {
            key: " ".join(value.split())[:2000] for key, value in stated.items() if value.strip()
        }
        answered = answered_message(self._text(_IN_REPLY_TO), self._text(_REFERENCES))
        self.outline.text("\n".join(f"{key.capitalize()}: {value}" for key, value in headers.items()), links=answered)
        plain, packed = self._text(_BODY), self._bytes(f"__substg1.0_{_RTF}0102")
        page = self._bytes(f"__substg1.0_{_HTML}0102") or self._text(_HTML).encode("utf-8", "replace")
        add_body(self.outline, plain, page, packed, self.limits)
        if identity := self._text(_MESSAGE_ID):
            headers["message_id"] = identity[:1000]
        self._attachments()
        if self.attachments:
            headers["attachments"] = [each.name for each in self.attachments[:_MAX_NAMES]]
        return headers

    def _recipients(self) -> dict[str, dict[str, str]]:
        """Returns the recipients by kind and name, as "Name <address>"."""
        found: dict[str, dict[str, str]] = {kind: {} for kind in _TYPES.values()}
        for entry in self.file.listdir(streams=False, storages=True):
            if entry[:-1] == [*self.storage] and entry[-1].startswith(_RECIPIENTS):
                storage = entry[-1]
                fixed = self._fixed_properties(_RECIPIENT_HEADER_BYTES, storage)
                name = " ".join(self._text(_NAME, storage).split())
                address = self._text(_SMTP_ADDRESS, storage) or self._text(_ADDRESS, storage)
                kind = _TYPES.get(_number(fixed.get(_RECIPIENT_TYPE, b"")))
                if kind and (name or address):
                    found[kind][name or address] = _person(name, " ".join(address.split()))
        return found

    def _attachments(self) -> None:
        depth = len(self.storage)
        for entry in self.file.listdir(streams=False, storages=True):
            if entry[:-1] != [*self.storage] or not entry[-1].startswith("__attach_version1.0_"):
                continue
            storage = entry[-1]
            name = self._text(_ATTACHMENT_NAME, storage) or self._text(_ATTACHMENT_SHORT_NAME, storage)
            name = " ".join(name.split())[:300]
            message = (*entry, f"__substg1.0_{_ATTACHED}000D")
            is_message = self.file.exists([*message, _PROPERTIES])
            if is_message and depth < 2 * _MAX_DEPTH:
                self._attached_message(message, name)
            elif is_message:
                self.omissions.add(OmissionKind.ATTACHMENT, name or "without a name")
            else:
                data = self._bytes(f"__substg1.0_{_ATTACHED}0102", storage)
                self.attachments.append(Attachment(name or "attachment", data))

    def _attached_message(self, storage: tuple[str, ...], name: str) -> None:
        """Adds a message that is attached to this message, and its attachments."""
        message = _Message(self.file, self.limits, self.outline, storage)
        self.outline.heading(len(storage) // 2, message.subject or name or "Attached message")
        message.read()
        self.attachments += message.attachments

    def _text(self, number: str, storage: str = "") -> str:
        if wide := self._bytes(f"__substg1.0_{number}001F", storage):
            return clean_text(wide.decode("utf-16-le", "replace").rstrip("\0"))
        narrow = self._bytes(f"__substg1.0_{number}001E", storage)
        return clean_text(narrow.decode(self.encoding, "replace").rstrip("\0"))

    def _bytes(self, name: str, storage: str = "") -> bytes:
        path = [*self.storage, *([storage] if storage else ()), name]
        if not self.file.exists(path):
            return b""
        with self.file.openstream(path) as stream:
            read: bytes = stream.read()
        return read

    def _fixed_properties(self, header_bytes: int, storage: str = "") -> dict[int, bytes]:
        entries = self._bytes(_PROPERTIES, storage)[header_bytes:]
        return {
            struct.unpack_from("<H", entries, at + 2)[0]: entries[at + 8 : at + 16]
            for at in range(0, len(entries) - 15, 16)
        }

    def _date(self) -> str:
        """Returns the time in UTC at which the message was sent, else the time of receipt, else ""."""
        for number in (_SENT, _RECEIVED):
            if number in self.fixed:
                ticks = int.from_bytes(self.fixed[number], "little")  # in units of 100 ns
                try:
                    return (_EPOCH + timedelta(microseconds=ticks // 10)).isoformat(timespec="seconds")
                except OverflowError:
                    continue
        return ""


def _number(value: bytes) -> int:
    """Returns the 32-bit number of a property; 0 if the property is missing."""
    return int.from_bytes(value[:4], "little")


def _person(name: str, address: str) -> str:
    """Returns "Name <address>", or only the name if the address is no e-mail address."""
    return f"{name} <{address}>" if name and "@" in address and name != address else name or address
