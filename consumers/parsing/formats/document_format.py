"""Declarations of document formats; the parsers are loaded later."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module

from consumers.omissions import Omissions
from consumers.parsing.limits import Limits
from consumers.splitting import ParsedText

Parser = Callable[[bytes, Limits, Omissions], ParsedText]
"""Converts a file's content to blocks, title and metadata. Reports all omitted content to the `Omissions`. Raises NotADocument
or Unreadable."""


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """A declaration without imports, so that parsing one format does not load the libraries of other formats."""

    name: str
    """Value of `format` in a document's metadata."""
    title: str
    """Name for users."""
    description: str
    """One sentence about the parts of a file that are parsed."""
    endings: tuple[str, ...]
    """Endings of file names, in lower case without the dot, the most common one first."""
    mime_types: tuple[str, ...]
    """MIME types of e-mail attachments in this format, the registered one first."""
    parser: str | None
    """Path `module.function` of the `Parser`, below this folder. None if a file contains several documents, which
    `read_collection` reads."""
    magic: re.Pattern[bytes] | None = None
    """Matches the first bytes of the content. A file that begins with these bytes has this format, whatever its
    name."""
    zip_parts: tuple[str, ...] = ()
    """Names of parts, and of top folders (ending in `/`), in zip archives. A file of this format contains at least one of
    these."""
    zip_frame: str = ""
    """A part that must also occur, unless the file's name has an ending of this format, because other archives may have a
    folder `word/`."""
    ole_parts: tuple[str, ...] = ()
    """Names of streams and storages that occur only at the top of OLE files of this format."""
    text_sign: re.Pattern[bytes] | None = None
    """Must match at the beginning of the content; otherwise the file is plain text. `.1`, for example, is also an ending of
    logs."""
    cut_at: bytes | None = None
    """A file that is too large is cut after the first byte of this separator. None if a file must be parsed as a
    whole."""
    takes_ending: bool = False
    """Whether the parser also takes the ending of the file's name, which determines the programming language."""
    libraries: tuple[str, ...] = ()
    """Third-party modules that the parser imports."""

    @property
    def binary(self) -> bool:
        """Whether the content identifies the format. If so, a file with an ending of this format but other content is
        damaged."""
        return self.magic is not None or bool(self.zip_parts or self.ole_parts)

    def load_parser(self, ending: str = "") -> Parser:
        """Returns the parser for a file whose name ends in `ending`."""
        assert self.parser is not None
        module, _, function = self.parser.rpartition(".")
        found = getattr(import_module(f"consumers.parsing.formats.{module}"), function)
        parser: Parser = partial(found, ending=ending) if self.takes_ending else found
        return parser
