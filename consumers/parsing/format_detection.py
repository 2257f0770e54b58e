"""Detects a file's format: from its content if that is conclusive, otherwise from the ending of its name.

The ending may be wrong or missing: some programs save web pages as .doc or .xls, and mail programs store messages without an
ending.
"""

import re
import zipfile
from codecs import BOM_UTF8
from io import BytesIO

from consumers.failure_codes import FailureCode
from consumers.parsing.file_name import format_hint
from consumers.parsing.formats.document_format import DocumentFormat
from consumers.parsing.formats.registry import (
    BY_ENDING,
    CSV,
    FORMATS,
    HTML,
    MAIL,
    MAILBOX,
    MAILBOX_LINE,
    OPENDOCUMENT,
    TEXT,
    WEB_ARCHIVE,
    WIKI,
    XML,
)
from consumers.parsing.limits import Damaged, NotADocument, WrongKind

_SIGN_WITHIN = 4096
"""Bytes at the beginning in which `text_sign` must match."""
_MAGIC_WITHIN = 1024
"""Bytes at the beginning in which a magic number is searched. A PDF may begin with other bytes; PDF viewers search the first
kilobyte."""

_ARCHIVES = (
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
)
_BINARIES = (
    (b"RIFF", "a sound or film file"),
    (b"ID3", "a sound file"),
    (b"OggS", "a sound or film file"),
    (b"fLaC", "a sound file"),
    (b"\x1aE\xdf\xa3", "a film"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"SQLite format 3\x00", "a SQLite database"),
    (b"\x00\x00\x01\x00", "an icon"),
    (b"PAR1", "a Parquet file"),
)
_OTHER_PROGRAMS = {
    **dict.fromkeys(("numbers", "key"), "a file of Apple's office programs; export it as PDF, PowerPoint or Excel"),
    **dict.fromkeys(("xps", "oxps"), "an XPS file; print it as PDF"),
    **dict.fromkeys(("one", "onetoc2"), "a OneNote section; export it as PDF or Word"),
}
"""Binary files of other programs, by ending: the kind of file and what the user can do."""
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

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


def detect_format(name: bytes, data: bytes) -> DocumentFormat:
    """Returns the format of a file called `name`. Raises NotADocument for files to skip, Unreadable for damaged ones."""
    ending, not_read = format_hint(name)
    if ending in _OTHER_PROGRAMS and not _reads_as_text(data[:512]):
        raise WrongKind(f"{_OTHER_PROGRAMS[ending]}, or exclude it")
    if not_read is not None:
        raise WrongKind(f"{not_read.title}, which contains no text for readers; exclude it")
    expected = BY_ENDING.get(ending)
    for each in FORMATS:
        if each.magic is not None and (
            each.magic.match(data) or (each is expected and each.magic.search(data, 0, _MAGIC_WITHIN))
        ):
            return each
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zipped_format(data, expected)
    if data.startswith(_OLE):
        parts = _ole_parts(data)
        for each in FORMATS:
            if any(part.lower() in parts for part in each.ole_parts):
                return each
        raise NotADocument(
            "an Office file protected by a password, or of an unknown kind; save it as .docx, .pptx or .xlsx "
            "without a password",
            FailureCode.PROTECTED,
        )
    if expected is not None and expected.ole_parts:
        expected = TEXT  # some programs use this ending for text files
    beginning = data[:_SIGN_WITHIN].removeprefix(BOM_UTF8)
    if expected is not None and expected.text_sign is not None and not expected.text_sign.match(beginning):
        expected = TEXT
    if expected is None or expected is TEXT or expected.binary:
        found = format_of_content(data, ending)
        if found is not None:
            return found
    if expected is not None and expected.binary:
        raise Damaged(
            f"damaged: its name says .{ending}, but its content is something else; copy it again, or rename it"
        )
    if expected is None or expected is TEXT:
        _refuse_binary(data, ending)
    return expected or TEXT


def _ole_parts(data: bytes) -> set[str]:
    """Returns the names of the streams and storages at the top of an OLE file, in lower case: these names are
    case-insensitive ([MS-CFB] 2.6.4). Raises Unreadable if its directory is damaged."""
    import olefile

    try:
        with olefile.OleFileIO(BytesIO(data)) as file:
            return {entry[0].lower() for entry in file.listdir()}
    except Exception as error:  # olefile raises many kinds of errors for damaged files
        raise Damaged(f"damaged: {error}; copy it again, or save it again") from error


def _zipped_format(data: bytes, expected: DocumentFormat | None) -> DocumentFormat:
    zip_expected = expected is not None and bool(expected.zip_parts)
    try:
        with zipfile.ZipFile(BytesIO(data)) as package:
            names = set(package.namelist())
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError) as error:
        if zip_expected:
            raise Damaged(f"damaged or truncated: {error}; copy it again, or save it again") from error
        raise NotADocument("a damaged archive; exclude it", FailureCode.ARCHIVE) from error
    names |= {name[: name.index("/") + 1] for name in names if "/" in name}
    for each in FORMATS:
        framed = each is expected or not each.zip_frame or each.zip_frame in names
        if framed and not names.isdisjoint(each.zip_parts):
            return each
    if expected is not None and zip_expected:
        raise Damaged(f"damaged: an archive without the parts of a .{expected.name} file; copy it again, or rename it")
    raise NotADocument("a zip archive; unpack it into the folder, or exclude it", FailureCode.ARCHIVE)


def _refuse_binary(data: bytes, ending: str) -> None:
    if _reads_as_text(data[:512]):
        return  # a text may begin with the letters of a magic number
    pattern = f' (exclude = ["**/*.{ending}"])' if ending.isalnum() else ""
    for magic, name in _ARCHIVES:
        if data.startswith(magic):
            raise NotADocument(f"{name}; unpack it into the folder, or exclude it{pattern}", FailureCode.ARCHIVE)
    if data[257:262] == b"ustar":
        raise NotADocument(f"a tar archive; unpack it into the folder, or exclude it{pattern}", FailureCode.ARCHIVE)
    for magic, name in _BINARIES:
        if data.startswith(magic):
            raise WrongKind(f"{name}, not a document; exclude it{pattern}, or add its text as a file")


def _reads_as_text(sample: bytes) -> bool:
    if any(byte < 9 for byte in sample):
        return False
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start >= 512 - 3  # the sample ends within a character
    return True


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
