"""The document formats that are read. A new one is added here; its parser stands in a file of its own below this folder."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from consumers.parsing.limits import Limits
from consumers.splitting import ParsedText

Parser = Callable[[bytes, Limits], ParsedText]
"""Takes a file's content, and gives its blocks, title and metadata. Raises NotADocument or Unreadable."""


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """What is known of a format without loading its parser: a text file must not wait for the libraries of the others."""

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
    libraries: tuple[str, ...] = ()
    """Modules of other projects that the parser imports."""

    @property
    def binary(self) -> bool:
        """Whether the content tells the format, so that a file of its name with other content is damaged."""
        return self.magic is not None or self.zip_part is not None

    def load_parser(self) -> Parser:
        assert self.parser is not None
        module, _, function = self.parser.rpartition(".")
        parser: Parser = getattr(import_module(f"consumers.parsing.formats.{module}"), function)
        return parser


FORMATS = (
    DocumentFormat(
        "text",
        "text",
        "Plain text in any encoding; the first line is the title where it stands apart.",
        ("txt", "text", "log", "rst", "org", "adoc", "asciidoc", "tex", "me"),
        ("text/plain",),
        "text.parse_text",
        libraries=("charset_normalizer",),
    ),
    DocumentFormat(
        "markdown",
        "Markdown",
        "CommonMark with tables; front matter becomes metadata.",
        ("md", "markdown", "mdown", "mkd", "mdx"),
        ("text/markdown",),
        "markup.markdown.parse_markdown",
        libraries=("markdown_it",),
    ),
    DocumentFormat(
        "html",
        "HTML",
        "The text of the page's content, without navigation, contents tables and permalinks.",
        ("html", "htm", "xhtml"),
        ("text/html",),
        "markup.html.parse_html",
        libraries=("lxml",),
    ),
    DocumentFormat(
        "pdf",
        "PDF",
        "The text layer, page by page; scanned pages without one are skipped.",
        ("pdf",),
        ("application/pdf",),
        "pdf.parse_pdf",
        magic=b"%PDF-",
        libraries=("pypdfium2",),
    ),
    DocumentFormat(
        "docx",
        "DOCX",
        "Word: headings, paragraphs, lists and tables.",
        ("docx", "docm", "dotx"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document",),
        "office.parse_docx",
        zip_part="word/",
        libraries=("mammoth", "lxml"),
    ),
    DocumentFormat(
        "pptx",
        "PPTX",
        "PowerPoint: each slide's text, tables and notes.",
        ("pptx", "pptm", "ppsx", "potx"),
        ("application/vnd.openxmlformats-officedocument.presentationml.presentation",),
        "office.parse_pptx",
        zip_part="ppt/",
        libraries=("pptx", "lxml"),
    ),
    DocumentFormat(
        "xlsx",
        "XLSX",
        "Excel: each row of each sheet, its values named by their columns.",
        ("xlsx", "xlsm", "xltx"),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",),
        "office.parse_xlsx",
        zip_part="xl/",
        libraries=("openpyxl", "lxml"),
    ),
    DocumentFormat(
        "epub",
        "EPUB",
        "The chapters in reading order.",
        ("epub",),
        ("application/epub+zip",),
        "epub.parse_epub",
        zip_part="META-INF/container.xml",
        libraries=("lxml",),
    ),
    DocumentFormat(
        "csv",
        "CSV",
        "Each row, its values named by their columns; commas, semicolons or tabs.",
        ("csv", "tsv", "tab"),
        ("text/csv", "text/tab-separated-values"),
        "csv.parse_csv",
    ),
    DocumentFormat(
        "mail",
        "e-mail",
        "Headers, body, and what is attached as text.",
        ("eml",),
        ("message/rfc822",),
        "mail.parse_mail",
    ),
    DocumentFormat(
        "json",
        "JSON",
        "A document, a list of documents, or a HippoRAG corpus.",
        ("json",),
        ("application/json",),
        None,
    ),
    DocumentFormat(
        "jsonl",
        "JSON lines",
        "One JSON document a line.",
        ("jsonl", "ndjson"),
        ("application/jsonl", "application/x-ndjson"),
        None,
    ),
)

BY_NAME = {each.name: each for each in FORMATS}
BY_ENDING = {ending: each for each in FORMATS for ending in each.endings}
BY_MIME_TYPE = {mime_type: each for each in FORMATS for mime_type in each.mime_types}
TEXT, MARKDOWN, HTML, CSV = (BY_NAME[name] for name in ("text", "markdown", "html", "csv"))
JSON, JSON_LINES = BY_NAME["json"], BY_NAME["jsonl"]
