"""Bounds on what a file may cost, and the errors with which a file is put aside."""

from dataclasses import dataclass

from consumers.failure_codes import FailureCode

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that hold whatever a file claims about itself. Sizes in bytes, lengths in characters."""

    file_bytes: int = 256 * MIB
    """Of a file that is read as a whole. `.jsonl` is read line by line and not bound by it."""
    json_line_bytes: int = 32 * MIB
    text_chars: int = 16 * MIB
    """Of one document's text: about 8,000 pages."""
    line_chars: int = MIB
    """Of one line of plain text: longer ones are data, not something to read."""
    unpacked_bytes: int = 256 * MIB
    """Of a packed format (DOCX, PPTX, XLSX, OpenDocument, EPUB, gzip), over all its parts."""
    unpacked_ratio: int = 200
    """Unpacked over packed size; looked at from 16 MiB on, as small files of blanks pack well."""
    columns: int = 2_000
    cells: int = 2_000_000
    """Of a table (CSV, XLSX)."""
    pages: int = 20_000
    """Of a PDF, and parts of an EPUB or slides of a PPTX."""


class Unreadable(Exception):
    """The file should be a document and cannot be read (`failed`). The message says why and what to do."""

    def __init__(self, message: str, code: FailureCode) -> None:
        super().__init__(message)
        self.code = code


class NotADocument(Exception):
    """The file is none that is indexed (`skipped`). The message says why and what to do."""

    def __init__(self, message: str, code: FailureCode) -> None:
        super().__init__(message)
        self.code = code
