"""Turns a file into documents: opens it safely, detects its format, parses and splits it. Runs in a worker process.

For a file that cannot be parsed, `parse_file` yields a document with `error`; for a file that should not be indexed, a document
with `error` and `skipped`. `parse_file` raises no error of a format's library. The worker pool reports files that exceed its
limits of time or memory.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind, Omissions
from consumers.openat import ANY_FILE, FileAccess
from consumers.parsing.attachments import attachment_context, read_attachments, with_attachment_links
from consumers.parsing.decoding import MAX_CHARACTER_BYTES
from consumers.parsing.file_name import ending_of, stem_of, unpacked_name
from consumers.parsing.format_detection import detect_format
from consumers.parsing.formats.document_format import DocumentFormat
from consumers.parsing.formats.registry import GZIP, JSON_LINES
from consumers.parsing.invisible_characters import without_invisible_characters
from consumers.parsing.limits import Damaged, Limits, NotADocument, NotIndexed, TooLarge
from consumers.parsing.ocr.recognition import AwaitsRecognition, TextRecognition
from consumers.parsing.own_date import published_at
from consumers.parsing.regular_file import OpenFile, ParseSummary
from consumers.parsing.repeated_failures import with_summarised_failures
from consumers.parsing.several_documents import read_collection, read_lines
from consumers.splitting import ParsedText, SplitSettings, split
from consumers.types import ParsedDocument, stated_metadata

DEFAULT_LIMITS = Limits()
READ_AS_A_WHOLE = (b"PK\x03\x04", b"PK\x05\x06", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"\x1f\x8b")
"""First bytes of zip, OLE and gzip files. Such files cannot be cut, because their directories may be at the end."""
_TAR_ENDINGS = frozenset(("tgz", "taz", "tpz"))

_SMALL = 16 << 20
_GZIP_WINDOW = 31
"""zlib's `wbits` for a gzip header and the largest window."""


def parse_file(
    path: bytes,
    uri: str,
    settings: SplitSettings,
    limits: Limits = DEFAULT_LIMITS,
    access: FileAccess = ANY_FILE,
    *,
    name: bytes | None = None,
    progress: Callable[[], None] = lambda: None,
) -> Iterator[ParsedDocument | ParseSummary]:
    """Yields the documents of a file, then a summary; no summary if the file could not be opened.

    `name` replaces the path in format detection, for content that is stored under another name. `progress` is called before
    each picture that OCR reads.
    """
    name = path if name is None else name
    open_file = partial(OpenFile, path, access)
    recognition = TextRecognition(limits, progress)
    documents = _parse(open_file, name, uri, settings, limits, recognition)
    yield from with_summarised_failures(documents, uri, stem_of(name))


def _parse(
    open_file: Callable[[], OpenFile],
    name: bytes,
    uri: str,
    settings: SplitSettings,
    limits: Limits,
    recognition: TextRecognition,
) -> Iterator[ParsedDocument | ParseSummary]:
    try:
        with open_file() as file:
            modified_at = file.status.st_mtime_ns / 1e9
            if ending_of(name) in JSON_LINES.endings:
                documents = _parse_lines(file, name, uri, settings, limits)
            else:
                data = file.read_all(_most_bytes(file, limits))
                documents = parse_data(data, name, uri, settings, limits, recognition, is_cut=file.is_cut)
            for document in documents:
                yield replace(document, modified_at=modified_at)
            yield replace(file.summary(), awaits_ocr=recognition.awaited > 0)
    except NotIndexed as error:
        yield _unindexed(uri, name, error)


def parse_data(
    data: bytes,
    name: bytes,
    uri: str,
    settings: SplitSettings,
    limits: Limits = DEFAULT_LIMITS,
    recognition: TextRecognition | None = None,
    *,
    is_cut: bool = False,
    depth: int = 0,
) -> Iterator[ParsedDocument]:
    """Yields the documents of a file's content. `name` decides the format if the content does not.

    `recognition` reads pictures. A document is not yielded if all its text is in pictures that a later run reads. `is_cut`:
    `data` is only the beginning of the content. `depth` is the depth of the file as an attachment, 0 if it is not attached.
    """
    reading = recognition or TextRecognition(limits, lambda: None)
    parse_part = partial(parse_data, settings=settings, limits=limits, recognition=reading)
    try:
        _refuse_blank(data)
        if is_cut and data.startswith(READ_AS_A_WHOLE):
            raise _too_large(len(data))
        format = detect_format(name, data)
        if is_cut:
            data = _cut(data, format)
        if format is GZIP:
            name, data = _unpacked(name, data, limits)
            format = detect_format(name, data)
        if format is GZIP:
            raise NotADocument("packed by gzip twice; unpack it into the folder, or exclude it", FailureCode.ARCHIVE)

        documents = read_collection(format, data, name, uri, settings, limits, partial(parse_part, depth=depth))
        if documents is not None:
            yield from documents
            if is_cut:
                yield _rest_of_collection(uri, name, len(data))
            return
        omissions = Omissions()
        if is_cut:
            omissions.add(OmissionKind.TOO_LARGE, _rest(len(data)))
        parsed = reading.with_recognised_text(_parsed(data, format, name, limits, omissions), omissions)
    except AwaitsRecognition:
        return
    except NotIndexed as error:
        yield _unindexed(uri, name, error)
        return

    parse_attachment = partial(parse_part, depth=depth + 1)
    found = read_attachments(parsed.attachments, uri, depth, limits, omissions, parse_attachment)
    parsed = replace(parsed, blocks=with_attachment_links(parsed.blocks, found))
    try:
        document = _document(parsed, format, name, uri, settings, omissions)
    except NotADocument as error:
        document = _unindexed(uri, name, error)
    yield document
    context = attachment_context(parsed, stem_of(name))
    for attachment in found:
        for each in attachment.documents:
            yield replace(each, metadata={**context, **attachment.metadata, **each.metadata})


def _most_bytes(file: OpenFile, limits: Limits) -> int:
    """Returns the number of bytes to read; for a file over the limit, the bytes that `text_chars` characters can need."""
    if file.status.st_size <= limits.file_bytes:
        return limits.file_bytes
    return min(limits.file_bytes, MAX_CHARACTER_BYTES * limits.text_chars)


def _cut(data: bytes, format: DocumentFormat) -> bytes:
    """Returns the content up to the last position where its format can be cut. Raises NotADocument if the format cannot be
    cut."""
    if format.cut_at is None:
        raise _too_large(len(data))
    if b"\0" in data[:256]:  # UTF-16 or UTF-32: the byte of a line end may be half of another character
        return data[: len(data) // MAX_CHARACTER_BYTES * MAX_CHARACTER_BYTES]
    return data[: data.rfind(format.cut_at) + 1] or data


def _rest(size: int) -> str:
    return f"the file after its first {size:,} bytes"


def _too_large(size: int) -> NotADocument:
    return TooLarge(f"larger than {size:,} bytes, and it can be read only as a whole; raise max_bytes, or exclude it")


def _rest_of_collection(uri: str, name: bytes, size: int) -> ParsedDocument:
    """Returns a skipped document that reports the part of a cut file that was not parsed."""
    rest = Omissions()
    rest.add(OmissionKind.TOO_LARGE, _rest(size))
    error = f"read up to its first {size:,} bytes: what follows is left out; raise max_bytes, or split it up"
    return ParsedDocument(
        uri, stem_of(name), error=error, skipped=True, code=FailureCode.TOO_LARGE, left_out=rest.done()
    )


def _refuse_blank(data: bytes) -> None:
    if not data.strip(b"\x00 \t\r\n\x0b\x0c"):
        raise NotADocument(
            "empty: there is nothing in it to index" if not data else "blank: it contains no text", FailureCode.NO_TEXT
        )


def _unpacked(name: bytes, data: bytes, limits: Limits) -> tuple[bytes, bytes]:
    """Returns the name and content of the file inside a gzip file. Raises NotADocument if it is an archive."""
    inner = unpacked_name(name)
    is_archive = ending_of(name) in _TAR_ENDINGS or ending_of(inner) == "tar"
    unpacked = b"" if is_archive else unpack_gzip(data, limits)
    if is_archive or unpacked[257:262] == b"ustar":
        raise NotADocument("a gzip archive; unpack it into the folder, or exclude it", FailureCode.ARCHIVE)
    _refuse_blank(unpacked)
    return inner, unpacked


def _parsed(data: bytes, format: DocumentFormat, name: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    parse = format.load_parser(ending_of(name))
    try:
        return parse(data, limits, omissions)
    except (NotIndexed, MemoryError):
        raise
    except Exception as error:  # the formats' libraries raise many kinds of errors for damaged files
        raise Damaged(
            f"damaged, or of a kind that its library does not read ({type(error).__name__}: {str(error)[:200]}); "
            "open it in its program and save it again"
        ) from error


def _document(
    parsed: ParsedText, format: DocumentFormat, name: bytes, uri: str, settings: SplitSettings, omissions: Omissions
) -> ParsedDocument:
    title, blocks = without_invisible_characters(parsed.title, parsed.blocks)
    passages = split(blocks, title, settings)
    if not passages:
        left_out = "; ".join(each.text for each in omissions.done())
        raise NotADocument("it contains no text" + (f", except {left_out}" if left_out else ""), FailureCode.NO_TEXT)
    omissions.add(OmissionKind.UNKNOWN_CHARACTER, count=sum(passage.text.count("\ufffd") for passage in passages))
    metadata = {"format": format.name, **stated_metadata(parsed.metadata)}
    if (published := published_at(parsed.metadata)) is not None:
        metadata["published_at"] = published
    return ParsedDocument(uri, title or stem_of(name), passages, metadata, left_out=omissions.done())


def _unindexed(uri: str, name: bytes, error: NotIndexed) -> ParsedDocument:
    return ParsedDocument(
        uri, stem_of(name), error=str(error), skipped=isinstance(error, NotADocument), code=error.code
    )


def _parse_lines(
    file: OpenFile, name: bytes, uri: str, settings: SplitSettings, limits: Limits
) -> Iterator[ParsedDocument]:
    found = yield from read_lines(_lines(file, limits), uri, stem_of(name), settings, limits)
    if file.is_cut:
        yield _rest_of_collection(uri, name, file.read_bytes)
    elif not found:
        yield _unindexed(uri, name, NotADocument("empty: there is nothing in it to index", FailureCode.NO_TEXT))


def _lines(file: OpenFile, limits: Limits) -> Iterator[tuple[bytes, bool]]:
    """Yields (line, whether it is complete). Omits the last line of a cut file, because its end is missing."""
    while (line := file.read_line(limits.json_line_bytes)) is not None and not (file.is_cut and file.ended_in_line):
        yield line


def unpack_gzip(data: bytes, limits: Limits) -> bytes:
    """Returns the unpacked content of all members. Raises NotADocument if it exceeds the limits, Unreadable if it is
    damaged."""
    max_bytes = min(limits.unpacked_bytes, max(_SMALL, limits.unpacked_ratio * len(data)))
    unpacked = bytearray()
    rest = data
    while rest[:2] == b"\x1f\x8b":
        member = zlib.decompressobj(_GZIP_WINDOW)
        try:
            unpacked += member.decompress(rest, max_bytes + 1 - len(unpacked))
        except zlib.error as error:
            raise Damaged(f"damaged: it cannot be unpacked ({error}); copy it again") from error
        if len(unpacked) > max_bytes:
            raise TooLarge(
                f"unpacks to more than {max_bytes:,} bytes, the most for a file of its size; exclude it if it is a bomb, "
                "or unpack it into the folder"
            )
        if not member.eof:
            raise Damaged("cut short: its end is missing; copy it again")
        rest = member.unused_data.lstrip(b"\0")
    return bytes(unpacked)
