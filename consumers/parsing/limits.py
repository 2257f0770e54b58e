"""Limits on the cost of parsing a file, and the errors for files that are not indexed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from consumers.failure_codes import FailureCode
from consumers.parsing.programs.installed import Program

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the content itself, not of the sizes that a file's headers claim. Sizes are in bytes, lengths in
    characters."""

    file_bytes: int = 256 * MIB
    """Maximum size of a file that is parsed as a whole. Does not apply to `.jsonl`, which is parsed line by line."""
    json_line_bytes: int = 32 * MIB
    text_chars: int = 16 * MIB
    """Maximum length of one document's text; 16 Mi characters are about 8,000 pages."""
    line_chars: int = MIB
    """Maximum length of one line of plain text; a longer line is data, not prose."""
    unpacked_bytes: int = 256 * MIB
    """Maximum total unpacked size of all parts of a packed file (DOCX, PPTX, XLSX, OpenDocument, EPUB, gzip)."""
    unpacked_ratio: int = 200
    """Maximum ratio of unpacked to packed size. Checked only above 16 MiB unpacked, because small harmless files exceed this
    ratio."""
    columns: int = 2_000
    cells: int = 2_000_000
    """Maximum number of cells of a table (CSV, XLSX)."""
    attachment_depth: int = 3
    """Maximum depth of attachments: 1 for files in an e-mail, 2 for files in an attached e-mail, and so on."""
    pages: int = 20_000
    """Maximum number of pages of a PDF, parts of an EPUB and slides of a PPTX."""
    program_seconds: float = 45.0
    """Maximum time of one run of an external program: OCR of one page, or the conversion of a file."""
    program_memory_bytes: int = 1024 * MIB
    """Maximum address space of an external program, within the parsing process's own limit."""
    ocr: Literal["off", "later", "now"] = "off"
    """Whether OCR reads pictures. "later" only counts them, so that the file's other text need not wait."""
    programs: Mapping[str, Program] = field(default_factory=dict)
    """The installed external programs (`consumers.parsing.programs.installed`)."""

    def check_pages(self, count: int, name: str = "pages") -> None:
        """Raises TooLarge if a document has more than `pages` pages, slides or parts."""
        if count > self.pages:
            raise TooLarge(f"{count:,} {name}, more than the {self.pages:,} read at most; split it up")

    def check_cells(self, count: int) -> None:
        """Raises TooLarge if a document has more than `cells` cells."""
        if count > self.cells:
            raise TooLarge(f"more than {self.cells:,} cells; exclude it, or split it up")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(**{**value, "programs": {key: Program(**each) for key, each in value["programs"].items()}})


class NotIndexed(Exception):
    """The file is not indexed. The message says why and what to do."""

    def __init__(self, message: str, code: FailureCode) -> None:
        super().__init__(message)
        self.code = code


class Unreadable(NotIndexed):
    """The file is of a document format but cannot be parsed (`failed`)."""


class Damaged(Unreadable):
    def __init__(self, message: str) -> None:
        super().__init__(message, FailureCode.DAMAGED)


class NotADocument(NotIndexed):
    """The file is not to be indexed (`skipped`)."""


class WrongKind(NotADocument):
    """The file is of a kind that is not indexed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, FailureCode.NOT_A_DOCUMENT)


class TooLarge(NotADocument):
    """The file exceeds a limit."""

    def __init__(self, message: str) -> None:
        super().__init__(message, FailureCode.TOO_LARGE)


class PictureError(Exception):
    """The picture cannot be decoded for OCR. The message is a clause without a capital letter."""
