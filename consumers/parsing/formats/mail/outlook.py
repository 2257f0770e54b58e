"""Outlook's .msg by olefile: subject, people, body, and the names of attachments ([MS-OXMSG])."""

import io
import re
import struct
from datetime import UTC, datetime, timedelta
from typing import Any

import olefile

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.mail.threads import answered_message
from consumers.parsing.formats.mail.versions import report_version, says_enough
from consumers.parsing.formats.markup.html_text import walk
from consumers.parsing.formats.markup.html_tree import tree
from consumers.parsing.limits import Limits, NotADocument, Unreadable
from consumers.parsing.outline import Outline
from consumers.splitting import ParsedText, paragraphs

_SUBJECT, _SENDER, _SENDER_ADDRESS, _SENDER_SMTP = "0037", "0C1A", "0C1F", "5D01"
_TO, _CC, _BCC, _BODY, _HTML, _RTF, _MESSAGE_ID = "0E04", "0E03", "0E02", "1000", "1013", "1009", "1035"
_IN_REPLY_TO, _REFERENCES = "1042", "1039"
_ATTACHMENT_NAME, _ATTACHMENT_SHORT_NAME = "3707", "3704"
_SENT, _RECEIVED, _CODE_PAGE = 0x0039, 0x0E06, 0x3FFD
_PROPERTIES = "__properties_version1.0"
_HEADER_BYTES = 32
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_MOST_ATTACHMENTS = 100
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def parse_msg(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    try:
        with olefile.OleFileIO(io.BytesIO(data)) as file:
            return _Message(file, limits, omissions).read()
    except OSError as error:
        raise Unreadable(f"damaged: {error}; copy it again, or save it again", FailureCode.DAMAGED) from error


class _Message:
    """A message. A property is a stream named by its number and type, or a 16-byte entry in one common stream."""

    def __init__(self, file: Any, limits: Limits, omissions: Omissions) -> None:
        self.omissions = omissions
        self.file = file
        self.limits = limits
        self.fixed = self._fixed_properties()
        code_page = struct.unpack("<I", self.fixed[_CODE_PAGE][:4])[0] if _CODE_PAGE in self.fixed else 1252
        self.encoding = _encoding(code_page)

    def read(self) -> ParsedText:
        outline = Outline(self.limits.text_chars, self.omissions)
        sender = self._text(_SENDER_SMTP) or self._text(_SENDER_ADDRESS)
        name = self._text(_SENDER)
        stated = {
            "from": f"{name} <{sender}>" if name and "@" in sender and name != sender else name or sender,
            "to": self._text(_TO),
            "cc": self._text(_CC),
            "bcc": self._text(_BCC),
            "date": self._date(),
        }
        headers: dict[str, Any] = {
            key: " ".join(value.split())[:2000] for key, value in stated.items() if value.strip()
        }
        answered = answered_message(self._text(_IN_REPLY_TO), self._text(_REFERENCES))
        outline.text("\n".join(f"{key.capitalize()}: {value}" for key, value in headers.items()), links=answered)
        self._body(outline)
        if identity := self._text(_MESSAGE_ID):
            headers["message_id"] = identity[:1000]
        if attached := self._attachments():
            headers["attachments"] = attached
        subject = _CONTROL.sub("", " ".join(self._text(_SUBJECT).split()))[:2000]
        if not outline.blocks:
            outline.text(subject)
        return ParsedText(outline.done(), subject, headers)

    def _body(self, outline: Outline) -> None:
        plain = self._text(_BODY)
        page = self._bytes(f"__substg1.0_{_HTML}0102") or self._text(_HTML).encode("utf-8", "replace")
        rich = Outline(self.limits.text_chars, Omissions())
        if page and (root := tree(page)) is not None:
            walk(root, rich, lines=False)
        shown = "\n".join(" ".join((*block.headings, block.text)) for block in rich.done())
        if plain.strip() and says_enough(plain, shown):
            for block in paragraphs(plain):
                outline.text(block.text, block.joint)
            report_version(shown, plain, self.omissions)
        elif shown and root is not None:
            walk(root, outline, lines=False)
            report_version(plain, shown, self.omissions)
        elif packed := self._bytes(f"__substg1.0_{_RTF}0102"):
            import compressed_rtf

            from consumers.parsing.formats.office.rtf import parse_rtf

            if int.from_bytes(packed[4:8], "little") > self.limits.unpacked_bytes:
                raise NotADocument("its body unpacks to more than is read; exclude it", FailureCode.TOO_LARGE)
            for block in parse_rtf(compressed_rtf.decompress(packed), self.limits, self.omissions).blocks:
                outline.text(block.text, block.joint)

    def _attachments(self) -> list[str]:
        found: list[str] = []
        for entry in self.file.listdir(streams=False, storages=True):
            if len(entry) == 1 and entry[0].startswith("__attach_version1.0_") and len(found) < _MOST_ATTACHMENTS:
                name = self._text(_ATTACHMENT_NAME, entry[0]) or self._text(_ATTACHMENT_SHORT_NAME, entry[0])
                name = " ".join(name.split())[:300]
                self.omissions.add(OmissionKind.ATTACHMENT, name or "without a name")
                if name:
                    found.append(name)
        return found

    def _text(self, number: str, storage: str = "") -> str:
        prefix = f"{storage}/" if storage else ""
        if wide := self._bytes(f"{prefix}__substg1.0_{number}001F"):
            return clean_text(wide.decode("utf-16-le", "replace").rstrip("\0"))
        narrow = self._bytes(f"{prefix}__substg1.0_{number}001E")
        return clean_text(narrow.decode(self.encoding, "replace").rstrip("\0"))

    def _bytes(self, path: str) -> bytes:
        if not self.file.exists(path):
            return b""
        with self.file.openstream(path) as stream:
            read: bytes = stream.read()
        return read

    def _fixed_properties(self) -> dict[int, bytes]:
        entries = self._bytes(_PROPERTIES)[_HEADER_BYTES:]
        return {
            struct.unpack_from("<H", entries, at + 2)[0]: entries[at + 8 : at + 16]
            for at in range(0, len(entries) - 15, 16)
        }

    def _date(self) -> str:
        """Return when the message was sent or, if unknown, received, in UTC; "" if the message states neither."""
        for number in (_SENT, _RECEIVED):
            if number in self.fixed:
                ticks = int.from_bytes(self.fixed[number], "little")  # in units of 100 ns
                try:
                    return (_EPOCH + timedelta(microseconds=ticks // 10)).isoformat(timespec="seconds")
                except OverflowError:
                    continue
        return ""


def _encoding(code_page: int) -> str:
    names = {65001: "utf-8", 20127: "ascii", 28591: "latin-1", 936: "gbk", 932: "cp932", 949: "cp949", 950: "cp950"}
    name = names.get(code_page, f"cp{code_page}")
    try:
        "".encode(name)
    except LookupError:
        return "cp1252"
    return name
