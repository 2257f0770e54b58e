"""The document formats that are read. A new one is added here; its parser stands in a file of its own below this folder."""

import re

from consumers.parsing.formats.document_format import DocumentFormat

_MAN_WORDS = "1 2 3 4 5 6 7 8 1p 3p 3t 3x 3pm 3perl 1ssl 3ssl 5ssl 7ssl 2type 3type 3const man mdoc"
_MAN_SECTIONS = tuple(_MAN_WORDS.split())
MAILBOX_LINE = rb"From [^\r\n]{1,200}\d{4}[^\r\n]{0,40}\r?\n"
"""Stands before each message of a mailbox: "From ann@example.org Sat Jan  3 01:05:34 2026". Bounded: no line is slow."""
_SOURCE_WORDS = """
    py pyi pyx js mjs cjs jsx ts tsx java c h cc cpp cxx hh hpp hxx cs go rs rb php pl pm swift kt kts scala groovy gradle sh
    bash zsh fish ps1 bat lua r jl f90 hs ml mli clj ex exs erl dart sql vb asm cmake proto nim zig tcl el lisp scm
"""
_SOURCE_ENDINGS = tuple(_SOURCE_WORDS.split())

FORMATS = (
    DocumentFormat(
        "text",
        "text",
        "Plain text in any encoding; the first line is the title where it stands apart.",
        ("txt", "text", "log", "adoc", "asciidoc", "me"),
        ("text/plain",),
        "text.parse_text",
        libraries=("charset_normalizer",),
    ),
    DocumentFormat(
        "markdown",
        "Markdown",
        "CommonMark with tables, wikilinks and callouts; front matter becomes metadata.",
        ("md", "markdown", "mdown", "mkd", "mdx"),
        ("text/markdown",),
        "markup.markdown.parse_markdown",
        libraries=("markdown_it", "yaml"),
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
        "restructuredtext",
        "reStructuredText",
        "Sections, lists and tables; directives and roles of Sphinx give their text, nothing is included.",
        ("rst", "rest"),
        ("text/x-rst",),
        "markup.restructured_text.parse_restructured_text",
        libraries=("docutils",),
    ),
    DocumentFormat(
        "latex",
        "LaTeX",
        "What is printed: sections, paragraphs, lists, tables, footnotes; formulas as plain text.",
        ("tex", "latex", "ltx"),
        ("text/x-tex", "application/x-tex", "application/x-latex"),
        "markup.latex.parse_latex",
        libraries=("pylatexenc",),
    ),
    DocumentFormat(
        "org",
        "Org",
        "Headlines, paragraphs, lists and tables, without drawers and planning.",
        ("org",),
        ("text/x-org",),
        "markup.org.parse_org",
    ),
    DocumentFormat(
        "man",
        "man pages",
        "Their sections, tagged paragraphs and tables, in the macros man and mdoc.",
        _MAN_SECTIONS,
        ("text/troff",),
        "markup.man.pages.parse_man",
        text_sign=re.compile(rb"""\s*[.'](?:\\?\\"|[ \t]*(?:[A-Za-z][A-Za-z0-9]|mso)\b)"""),
    ),
    DocumentFormat(
        "xml",
        "XML",
        "Its text: titles as headings, records with the names of their values; DocBook and feeds among them.",
        ("xml", "docbook", "dbk", "rss", "atom", "tei", "dita", "fb2"),
        ("application/xml", "text/xml", "application/rss+xml", "application/atom+xml"),
        "markup.xml.parse_xml",
        libraries=("lxml",),
    ),
    DocumentFormat(
        "notebook",
        "Jupyter notebooks",
        "The Markdown and the code of their cells, without what the code printed.",
        ("ipynb",),
        ("application/x-ipynb+json",),
        "notebook.parse_notebook",
        libraries=("markdown_it",),
    ),
    DocumentFormat(
        "source",
        "source code",
        "Comments and docstrings of four words or more, without licences; what programs wrote is skipped.",
        _SOURCE_ENDINGS,
        ("text/x-python", "text/javascript", "text/x-c", "text/x-java-source"),
        "source_code.parse_source",
        takes_ending=True,
        libraries=("pygments",),
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
        "office.microsoft.parse_docx",
        zip_part="word/",
        libraries=("mammoth", "lxml"),
    ),
    DocumentFormat(
        "pptx",
        "PPTX",
        "PowerPoint: each slide's text, tables and notes.",
        ("pptx", "pptm", "ppsx", "potx"),
        ("application/vnd.openxmlformats-officedocument.presentationml.presentation",),
        "office.microsoft.parse_pptx",
        zip_part="ppt/",
        libraries=("pptx", "lxml"),
    ),
    DocumentFormat(
        "xlsx",
        "XLSX",
        "Excel: each row of each sheet, its values named by their columns.",
        ("xlsx", "xlsm", "xltx"),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",),
        "office.microsoft.parse_xlsx",
        zip_part="xl/",
        libraries=("openpyxl", "lxml"),
    ),
    DocumentFormat(
        "opendocument",
        "OpenDocument",
        "Text, sheets and slides of LibreOffice: headings, paragraphs, lists, rows.",
        ("odt", "ods", "odp", "ott", "ots", "otp"),
        (
            "application/vnd.oasis.opendocument.text",
            "application/vnd.oasis.opendocument.spreadsheet",
            "application/vnd.oasis.opendocument.presentation",
        ),
        "office.opendocument.parse_opendocument",
        zip_part="content.xml",
        libraries=("lxml",),
    ),
    DocumentFormat(
        "rtf",
        "RTF",
        "The text and the rows of tables; headings are not marked in it.",
        ("rtf",),
        ("application/rtf", "text/rtf"),
        "office.rtf.parse_rtf",
        magic=b"{\\rtf",
        libraries=("striprtf",),
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
        "mail.internet_message.parse_mail",
    ),
    DocumentFormat(
        "mailbox",
        "mailboxes",
        "Each message under its subject.",
        ("mbox",),
        ("application/mbox",),
        "mail.mailbox.parse_mailbox",
        text_sign=re.compile(MAILBOX_LINE),
    ),
    DocumentFormat(
        "outlook",
        "Outlook messages",
        "Subject, people, date and body, and the names of what is attached.",
        ("msg", "oft"),
        ("application/vnd.ms-outlook",),
        "mail.outlook.parse_msg",
        ole_stream="__properties_version1.0",
        libraries=("olefile", "compressed_rtf", "lxml", "striprtf"),
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
    DocumentFormat(
        "gzip",
        "gzip",
        "One file of any of these formats, packed: read as that file.",
        ("gz",),
        ("application/gzip",),
        None,
        magic=b"\x1f\x8b",
    ),
)

BY_NAME = {each.name: each for each in FORMATS}
BY_ENDING = {ending: each for each in FORMATS for ending in each.endings}
BY_MIME_TYPE = {mime_type: each for each in FORMATS for mime_type in each.mime_types}
TEXT, MARKDOWN, HTML, CSV = (BY_NAME[name] for name in ("text", "markdown", "html", "csv"))
JSON, JSON_LINES, GZIP = (BY_NAME[name] for name in ("json", "jsonl", "gzip"))
