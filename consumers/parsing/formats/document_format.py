"""What is known of a document format without loading its parser."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module

from consumers.omissions import Omissions
from consumers.parsing.limits import Limits
from consumers.splitting import ParsedText

Parser = Callable[[bytes, Limits, Omissions], ParsedText]
"""Takes a file's content and gives its blocks, title and metadata. Reports all content that it leaves out to the `Omissions`.
Raises NotADocument or Unreadable."""


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """A declaration that imports nothing: a text file must not wait for the libraries of the other formats."""

    name: str
    """In the metadata of its documents, as `format`."""
    title: str
    """What people call it."""
    description: str
    """One sentence on what is read of it."""
    endings: tuple[str, ...]
    """Of file names, in lower case without the dot; the usual one first."""
    mime_types: tuple[str, ...]
    """By which an e-mail names an attachment; the registered one first."""
    parser: str | None
    """`module.function` below this folder, a `Parser`. None: the file holds documents of its own, see `parse_file`."""
    magic: bytes | None = None
    """How its content begins. A file that begins so has this format, whatever it is called."""
    zip_part: str | None = None
    """How the name of a part begins that a zip archive of this format has, and no other archive."""
    ole_stream: str | None = None
    """The name of a stream that an OLE file of this format has, and no other one."""
    text_sign: re.Pattern[bytes] | None = None
    """What its content matches at the beginning. Without it a file of its endings is plain text: `.1` ends logs too."""
    cut_at: bytes | None = None
    """Where a file that is too large may be cut: after the first byte of this. None: it can be read only as a whole."""
    takes_ending: bool = False
    """Its parser takes the ending of the file's name too, which says in what language it is."""
    libraries: tuple[str, ...] = ()
    """Modules of other projects that the parser imports."""

    @property
    def binary(self) -> bool:
        """Whether the content tells the format, so that a file of its name with other content is damaged."""
        return self.magic is not None or self.zip_part is not None or self.ole_stream is not None

    def load_parser(self, ending: str = "") -> Parser:
        """The parser for a file whose name ends in `ending`."""
        assert self.parser is not None
        module, _, function = self.parser.rpartition(".")
        found = getattr(import_module(f"consumers.parsing.formats.{module}"), function)
        parser: Parser = partial(found, ending=ending) if self.takes_ending else found
        return parser
