"""From a file to documents: opened safely, its format detected, parsed, split. Meant to run in a worker process.

A file never makes `parse_file` raise: what cannot be read becomes a document with `error`, and one that is not meant to be
read a document with `error` and `skipped`. What a limit of the process stops (time, memory) is the worker pool's to report.
"""

from collections.abc import Iterator
from dataclasses import replace

from consumers.failure_codes import FailureCode
from consumers.json_documents import read_json_file, read_json_line, read_json_lines
from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.file_name import ending_of, stem_of, unpacked_name
from consumers.parsing.format_detection import detect_format
from consumers.parsing.formats.document_format import DocumentFormat
from consumers.parsing.formats.registry import GZIP, JSON, JSON_LINES
from consumers.parsing.gzip_archive import unpack_gzip
from consumers.parsing.invisible_characters import without_invisible_characters
from consumers.parsing.limits import Limits, NotADocument, Unreadable
from consumers.parsing.own_date import published_at
from consumers.parsing.regular_file import OpenFile, ParseSummary
from consumers.splitting import SplitSettings, split
from consumers.types import ParsedDocument, stated_metadata

DEFAULT_LIMITS = Limits()
_TAR_ENDINGS = frozenset(("tgz", "taz", "tpz"))


def parse_file(
    path: bytes,
    uri: str,
    settings: SplitSettings,
    limits: Limits = DEFAULT_LIMITS,
    *,
    follow_symlinks: bool = False,
    name: bytes | None = None,
    root: bytes | None = None,
    checked_inode: int | None = None,
) -> Iterator[ParsedDocument | ParseSummary]:
    """The documents of a file, and last a summary of what was read (none where the file was not opened or is too large).

    `name` decides the format in place of the path, for content that is kept under another name. `root` and `checked_inode`
    keep what is opened within a folder, see `consumers.openat`.
    """
    name = path if name is None else name
    try:
        with OpenFile(path, follow_symlinks=follow_symlinks, root=root, checked_inode=checked_inode) as file:
            modified_at = file.status.st_mtime_ns / 1e9
            if ending_of(name) in JSON_LINES.endings:
                yield from _parse_lines(file, name, uri, settings, limits, modified_at)
            else:
                yield from parse_data(file.read_all(limits.file_bytes), name, uri, settings, limits, modified_at)
            yield file.summary()
    except (NotADocument, Unreadable) as error:
        yield _put_aside(uri, name, error, None)


def parse_data(
    data: bytes,
    name: bytes,
    uri: str,
    settings: SplitSettings,
    limits: Limits = DEFAULT_LIMITS,
    modified_at: float | None = None,
) -> Iterator[ParsedDocument]:
    """The documents of a file's content; `name` decides the format where the content does not."""
    try:
        _refuse_blank(data)
        format = detect_format(name, data)
        if format is GZIP:
            name, data = _unpacked(name, data, limits)
            format = detect_format(name, data)
        if format is GZIP:
            raise NotADocument("packed by gzip twice; unpack it into the folder, or exclude it", FailureCode.ARCHIVE)
        if format is JSON_LINES:
            for found in read_json_lines(data, f"{uri}#", settings):
                yield replace(found, modified_at=modified_at)
            return
        if format is JSON:
            yield from read_json_file(data, uri, settings, modified_at, fallback_title=stem_of(name))
            return
        yield _document(data, format, name, uri, settings, limits, modified_at)
    except (NotADocument, Unreadable) as error:
        yield _put_aside(uri, name, error, modified_at)


def _refuse_blank(data: bytes) -> None:
    if not data.strip(b"\x00 \t\r\n\x0b\x0c"):
        raise NotADocument(
            "empty: there is nothing in it to index" if not data else "blank: there is no text in it",
            FailureCode.NO_TEXT,
        )


def _unpacked(name: bytes, data: bytes, limits: Limits) -> tuple[bytes, bytes]:
    """The name and the content of the file that gzip packed. Raises NotADocument for packed archives."""
    inner = unpacked_name(name)
    is_archive = ending_of(name) in _TAR_ENDINGS or ending_of(inner) == "tar"
    unpacked = b"" if is_archive else unpack_gzip(data, limits)
    if is_archive or unpacked[257:262] == b"ustar":
        raise NotADocument("a gzip archive; unpack it into the folder, or exclude it", FailureCode.ARCHIVE)
    _refuse_blank(unpacked)
    return inner, unpacked


def _document(
    data: bytes,
    format: DocumentFormat,
    name: bytes,
    uri: str,
    settings: SplitSettings,
    limits: Limits,
    modified_at: float | None,
) -> ParsedDocument:
    parse = format.load_parser(ending_of(name))
    omissions = Omissions()
    try:
        parsed = parse(data, limits, omissions)
    except (NotADocument, Unreadable, MemoryError):
        raise
    except Exception as error:  # the formats' libraries raise whatever a damaged file makes them stumble over
        raise Unreadable(
            f"damaged, or of a kind that its library does not read ({type(error).__name__}: {str(error)[:200]}); "
            "open it in its program and save it anew",
            FailureCode.DAMAGED,
        ) from error
    title, blocks = without_invisible_characters(parsed.title, parsed.blocks)
    passages = split(blocks, title, settings)
    if not passages:
        left_out = "; ".join(each.text for each in omissions.done())
        raise NotADocument("there is no text in it" + (f", except {left_out}" if left_out else ""), FailureCode.NO_TEXT)
    omissions.add(OmissionKind.UNKNOWN_CHARACTER, count=sum(passage.text.count("\ufffd") for passage in passages))
    metadata = {"format": format.name, **stated_metadata(parsed.metadata)}
    if (published := published_at(parsed.metadata)) is not None:
        metadata["published_at"] = published
    return ParsedDocument(uri, title or stem_of(name), passages, metadata, modified_at, left_out=omissions.done())


def _put_aside(uri: str, name: bytes, error: NotADocument | Unreadable, modified_at: float | None) -> ParsedDocument:
    skipped = isinstance(error, NotADocument)
    return ParsedDocument(
        uri, stem_of(name), modified_at=modified_at, error=str(error), skipped=skipped, code=error.code
    )


def _parse_lines(
    file: OpenFile, name: bytes, uri: str, settings: SplitSettings, limits: Limits, modified_at: float
) -> Iterator[ParsedDocument]:
    """One document a line; a bad line costs only itself."""
    number = 0
    found = False
    while (read := file.read_line(limits.json_line_bytes)) is not None:
        number += 1
        line, whole = read
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
            if line[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in line[:64]:
                reason = "not UTF-8, as JSON lines must be; save it as UTF-8"
                yield ParsedDocument(
                    uri, stem_of(name), modified_at=modified_at, error=reason, code=FailureCode.ENCODING
                )
                return
        if not line.strip():
            continue
        found = True
        if not whole:
            reason = f"line {number} is longer than {limits.json_line_bytes:,} bytes; split its text up"
            yield ParsedDocument(
                f"{uri}#line-{number}", modified_at=modified_at, error=reason, code=FailureCode.TOO_LARGE
            )
            continue
        yield read_json_line(line, number, f"{uri}#", settings, modified_at)
    if not found:
        reason = "empty: there is nothing in it to index"
        yield ParsedDocument(
            uri, stem_of(name), modified_at=modified_at, error=reason, skipped=True, code=FailureCode.NO_TEXT
        )
