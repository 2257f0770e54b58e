"""Limits on the cost of parsing a file, and the errors for files that are not indexed."""

from dataclasses import dataclass

from consumers.failure_codes import FailureCode

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that apply whatever a file's headers claim. Sizes are in bytes, lengths in characters."""

    file_bytes: int = 256 * MIB
    """Maximum size of a file that is parsed as a whole. `.jsonl` is parsed line by line, without this limit."""
    json_line_bytes: int = 32 * MIB
    text_chars: int = 16 * MIB
    """Maximum length of one document's text; 16 Mi characters are about 8,000 pages."""
    line_chars: int = MIB
    """Maximum length of one line of plain text; a longer line is data, not prose."""
    unpacked_bytes: int = 256 * MIB
    """Maximum unpacked size of a packed file (DOCX, PPTX, XLSX, OpenDocument, EPUB, gzip), all parts together."""
    unpacked_ratio: int = 200
    """Maximum of unpacked size / packed size. It applies from 16 MiB unpacked: small files of spaces have high ratios."""
    columns: int = 2_000
    cells: int = 2_000_000
    """Maximum number of cells of a table (CSV, XLSX)."""
    attachment_depth: int = 3
    """Maximum depth of attachments: files in an e-mail (1), files in an e-mail that is attached to it (2), and so on."""
    pages: int = 20_000
    """Maximum number of pages of a PDF, parts of an EPUB and slides of a PPTX."""


class Unreadable(Exception):
    """The file should be a document but cannot be parsed (`failed`). The message says why and what to do."""

    def __init__(self, message: str, code: FailureCode) -> None:
        super().__init__(message)
        self.code = code


class NotADocument(Exception):
    """The file is of a kind that is not indexed (`skipped`). The message says why and what to do."""

    def __init__(self, message: str, code: FailureCode) -> None:
        super().__init__(message)
        self.code = code
