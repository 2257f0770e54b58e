"""Old office files, converted by LibreOffice to a format that hippod parses."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any

import olefile

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.office.slides import parse_pptx
from consumers.parsing.formats.office.word import parse_docx
from consumers.parsing.formats.pdf.document import parse_pdf
from consumers.parsing.limits import Damaged, Limits, NotADocument
from consumers.parsing.office_properties import document_properties, ole_properties
from consumers.parsing.outline import comment_text
from consumers.parsing.programs.installed import CONVERTER, KNOWN_PROGRAMS
from consumers.parsing.programs.libreoffice import convert
from consumers.parsing.programs.run import ProgramFailed
from consumers.parsing.zip_archive import open_package, parse_xml, read_member
from consumers.splitting import ParsedText, TextBlock

_Parse = Callable[[bytes, Limits, Omissions], ParsedText]
_KINDS: tuple[tuple[str, str, str, _Parse], ...] = (
    ("WordDocument", "doc", "docx", parse_docx),
    ("PowerPoint Document", "ppt", "pptx", parse_pptx),
    ("VisioDocument", "vsd", "pdf", parse_pdf),
    ("Quill", "pub", "pdf", parse_pdf),
    ("visio/document.xml", "vsdx", "pdf", parse_pdf),
    ("Index/Document.iwa", "pages", "docx", parse_docx),
    ("buildVersionHistory.plist", "pages", "docx", parse_docx),
)
"""For each kind of file: (part or stream that identifies it, its ending, ending after the conversion, parser of the
converted file)."""
_PROMPT = re.compile(r"Click to edit the (?:notes|title text|outline text) format\s*\Z")
"""Prompt that LibreOffice writes into empty placeholders of slides and notes."""
_IS_ENCRYPTED, _ENCRYPTED_SLIDES = 0x0100, 0xF3D1C4DF
"""The flag `fEncrypted` ([MS-DOC] 2.5.2) and the token of encrypted slides ([MS-PPT] 2.3.2)."""
_SHAPE_VALUES = frozenset(("Label", "Prompt", "Value"))
_OF_CONVERSION = ("created", "modified")
"""Properties in which LibreOffice may write the time of the conversion. These properties are taken from the original
file."""


def parse_converted(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    parts, (stated, title) = _parts(data, limits)
    ending, target, parse = next(kind[1:] for kind in _KINDS if kind[0].lower() in parts)
    if CONVERTER not in limits.programs:
        raise NotADocument(
            f"a .{ending} file, which hippod reads with LibreOffice; install the packages "
            f"{KNOWN_PROGRAMS[CONVERTER].package}, save it as .{target}, or exclude it",
            FailureCode.NEEDS_CONVERTER,
        )
    try:
        converted = convert(data, ending, target, limits)
    except ProgramFailed as error:
        raise Damaged(
            f"LibreOffice did not convert it: {error}; open it in its program and save it as .{target}"
        ) from error
    parsed = parse(converted, limits, omissions)
    for block in parsed.blocks:
        if _PROMPT.match(block.text):
            omissions.add(OmissionKind.HIDDEN, block.text)
    parsed = replace(parsed, blocks=tuple(each for each in parsed.blocks if not _PROMPT.match(each.text)))
    if ending == "vsdx":
        parsed = replace(parsed, blocks=(*parsed.blocks, *_comment_blocks(data, limits, parsed, omissions)))
    found = {name: value for name, value in parsed.metadata.items() if name not in _OF_CONVERSION}
    metadata = {**found, **stated, "converted_by": limits.programs[CONVERTER].identity}
    return replace(parsed, title=title or parsed.title, metadata=metadata)


def _parts(data: bytes, limits: Limits) -> tuple[set[str], tuple[dict[str, str], str]]:
    """Returns the names of the file's parts or streams, in lower case, and its properties with its title."""
    if data.startswith(b"PK"):  # not `is_zipfile`: an OLE file that embeds a zip archive may end like one
        with open_package(data, limits) as package:
            return {name.lower() for name in package.namelist()}, document_properties(package)
    with olefile.OleFileIO(BytesIO(data)) as file:
        if (
            _number(file, "WordDocument", 10, 2) & _IS_ENCRYPTED
            or _number(file, "Current User", 12, 4) == _ENCRYPTED_SLIDES
        ):
            raise NotADocument("protected by a password; save it without one", FailureCode.PROTECTED)
        return {entry[0].lower() for entry in file.listdir()}, ole_properties(file)


def _number(file: Any, stream: str, at: int, size: int) -> int:
    """Returns the number of `size` bytes at position `at` of a stream; 0 if the stream is missing."""
    return int.from_bytes(file.openstream(stream).read(at + size)[at:], "little") if file.exists(stream) else 0


def _comment_blocks(data: bytes, limits: Limits, parsed: ParsedText, omissions: Omissions) -> Iterator[TextBlock]:
    """Yields the comments of a Visio file ([MS-VSDX] 2.2.8). Reports values of shapes that no page shows
    (2.2.5.3.4)."""
    shown = {word for block in parsed.blocks for word in block.text.split()}
    with open_package(data, limits) as package:
        for name in package.namelist():
            if not re.fullmatch(r"visio/(?:comments|pages/page\d+)\.xml", name):
                continue
            root = parse_xml(read_member(package, name), name)
            for comment in root.iter("{*}CommentEntry"):
                if text := clean_text("".join(comment.itertext())).strip():
                    yield TextBlock(comment_text(text))
            for cell in root.iterfind(".//{*}Section[@N='Property']/{*}Row/{*}Cell"):
                value = clean_text(cell.get("V") or "")
                if cell.get("N") in _SHAPE_VALUES and not set(value.split()) <= shown:
                    omissions.add_words(OmissionKind.METADATA, value)
