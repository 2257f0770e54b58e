"""Old office files, converted by LibreOffice to a format that hippod parses."""

import zipfile
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO

import olefile

from consumers.failure_codes import FailureCode
from consumers.omissions import Omissions
from consumers.parsing.formats.office.slides import parse_pptx
from consumers.parsing.formats.office.word import parse_docx
from consumers.parsing.formats.pdf.document import parse_pdf
from consumers.parsing.limits import Limits, NotADocument, Unreadable
from consumers.parsing.programs.installed import CONVERTER, KNOWN_PROGRAMS
from consumers.parsing.programs.libreoffice import convert
from consumers.parsing.programs.run import ProgramFailed
from consumers.parsing.zip_archive import open_package
from consumers.splitting import ParsedText

_Parse = Callable[[bytes, Limits, Omissions], ParsedText]
_KINDS: tuple[tuple[str, str, str, _Parse], ...] = (
    ("WordDocument", "doc", "docx", parse_docx),
    ("PowerPoint Document", "ppt", "pptx", parse_pptx),
    ("VisioDocument", "vsd", "pdf", parse_pdf),
    ("Quill", "pub", "pdf", parse_pdf),
    ("visio/document.xml", "vsdx", "pdf", parse_pdf),
    ("Index/Document.iwa", "pages", "docx", parse_docx),
)
"""A part or stream of each kind of file, its ending, the format to which it is converted, and that format's parser."""


def parse_converted(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    parts = _parts(data, limits)
    ending, target, parse = next(kind[1:] for kind in _KINDS if kind[0] in parts)
    if CONVERTER not in limits.programs:
        raise NotADocument(
            f"a .{ending} file, which hippod reads with LibreOffice; install the packages "
            f"{KNOWN_PROGRAMS[CONVERTER].package}, save it as .{target}, or exclude it",
            FailureCode.NEEDS_CONVERTER,
        )
    try:
        converted = convert(data, ending, target, limits)
    except ProgramFailed as error:
        raise Unreadable(
            f"LibreOffice did not convert it: {error}; open it in its program and save it as .{target}",
            FailureCode.DAMAGED,
        ) from error
    parsed = parse(converted, limits, omissions)
    return replace(parsed, metadata={**parsed.metadata, "converted_by": limits.programs[CONVERTER].identity})


def _parts(data: bytes, limits: Limits) -> set[str]:
    if zipfile.is_zipfile(BytesIO(data)):
        with open_package(data, limits) as package:
            return set(package.namelist())
    with olefile.OleFileIO(BytesIO(data)) as file:
        return {entry[0] for entry in file.listdir()}
