"""The registry of document formats. To add a format, declare it here and add its parser as a file below this folder."""

import re

from consumers.parsing.formats.document_format import DocumentFormat

_MAN_SECTIONS = tuple("1 2 3 4 5 6 7 8 1p 3p 3t 3x 3pm 3perl 1ssl 3ssl 5ssl 7ssl 2type 3type 3const man mdoc".split())
MAILBOX_LINE = rb"From [^\r\n]{1,200}\d{4}[^\r\n]{0,40}\r?\n"
"""The line before each message of a mailbox: "From ann@example.org Sat Jan 3 01:05:34 2026". The repetitions are bounded, so
that matching is fast on any line."""
_SOURCE_ENDINGS = tuple(
    """
    py pyi pyx js mjs cjs jsx ts tsx java c h cc cpp cxx hh hpp hxx cs go rs rb php pl pm swift kt kts scala groovy gradle sh
    bash zsh fish ps1 bat lua r jl f90 hs ml mli clj ex exs erl dart sql vb asm cmake proto nim zig tcl el lisp scm
""".split()
)

_OPC = "[Content_Types].xml"
"""Part of every Office Open XML file."""

FORMATS = (
    DocumentFormat(
        "text", "text",
        "Plain text in any encoding; the first line is the title where it stands apart.",
        ("txt", "text", "log", "adoc", "asciidoc", "me"), ("text/plain",),
        "text.parse_text", libraries=("charset_normalizer",), cut_at=b"\n",
    ),
    DocumentFormat(
        "markdown", "Markdown",
        "CommonMark with tables, wikilinks and callouts.",
        ("md", "markdown", "mdown", "mkd", "mdx"), ("text/markdown",),
        "markup.markdown.parse_markdown", libraries=("markdown_it", "yaml"), cut_at=b"\n",
    ),
    DocumentFormat(
        "html", "HTML",
        "The text of the page's content, without navigation, contents tables and permalinks.",
        ("html", "htm", "xhtml"), ("text/html",),
        "markup.html.parse_html", libraries=("lxml",), cut_at=b">",
    ),
    DocumentFormat(
        "web_archive", "saved web pages",
        "The page, read as HTML, and its frames.",
        ("mhtml", "mht"), ("multipart/related",),
        "markup.web_archive.parse_web_archive", libraries=("lxml",),
    ),
    DocumentFormat(
        "restructuredtext", "reStructuredText",
        "Sections, lists and tables; directives and roles of Sphinx give their text, nothing is included.",
        ("rst", "rest"), ("text/x-rst",),
        "markup.restructured_text.parse_restructured_text", libraries=("docutils",), cut_at=b"\n",
    ),
    DocumentFormat(
        "latex", "LaTeX",
        "What is printed: sections, paragraphs, lists, tables, footnotes; formulas as plain text.",
        ("tex", "latex", "ltx"), ("text/x-tex", "application/x-tex", "application/x-latex"),
        "markup.latex.parse_latex", libraries=("pylatexenc",), cut_at=b"\n",
    ),
    DocumentFormat(
        "org", "Org",
        "Headlines, paragraphs, lists and tables, without drawers, planning and task states.",
        ("org",), ("text/x-org",),
        "markup.org.parse_org", cut_at=b"\n",
    ),
    DocumentFormat(
        "wiki", "wiki pages",
        "Pages of DokuWiki and MediaWiki: headings, lists, tables, links; of an export, each page's newest revision.",
        ("wiki", "mediawiki", "wikitext", "dokuwiki"), ("text/x-wiki",),
        "markup.wiki.parse_wiki", libraries=("lxml",), cut_at=b"\n",
    ),
    DocumentFormat(
        "man", "man pages",
        "Their sections, tagged paragraphs and tables, in the macros man and mdoc.",
        _MAN_SECTIONS, ("text/troff",),
        "markup.man.pages.parse_man",
        text_sign=re.compile(rb"""\s*[.'](?:\\?\\"|[ \t]*(?:[A-Za-z][A-Za-z0-9]|mso)\b)"""), cut_at=b"\n",
    ),
    DocumentFormat(
        "xml", "XML",
        "Its text: titles as headings, records with the names of their values; DocBook and feeds among them.",
        ("xml", "docbook", "dbk", "rss", "atom", "tei", "dita", "fb2"),
        ("application/xml", "text/xml", "application/rss+xml", "application/atom+xml"),
        "markup.xml.parse_xml", libraries=("lxml",), cut_at=b">",
    ),
    DocumentFormat(
        "notebook", "Jupyter notebooks",
        "The Markdown and the code of their cells, without what the code printed.",
        ("ipynb",), ("application/x-ipynb+json",),
        "notebook.parse_notebook", libraries=("markdown_it",),
    ),
    DocumentFormat(
        "source", "source code",
        "Comments and docstrings of four words or more, without licences; what programs wrote is skipped.",
        _SOURCE_ENDINGS, ("text/x-python", "text/javascript", "text/x-c", "text/x-java-source"),
        "source_code.parse_source", takes_ending=True, libraries=("pygments",), cut_at=b"\n",
    ),
    DocumentFormat(
        "pdf", "PDF",
        "The text layer, page by page, values of forms and comments.",
        ("pdf",), ("application/pdf",),
        "pdf.document.parse_pdf", magic=re.compile(rb"%PDF-"), libraries=("pypdfium2",),
    ),
    DocumentFormat(
        "picture", "pictures",
        "The text in scans, photographs and screenshots, read by OCR if Tesseract is installed.",
        ("png", "jpg", "jpeg", "tif", "tiff", "bmp", "gif", "webp"),
        ("image/png", "image/jpeg", "image/tiff", "image/bmp", "image/gif", "image/webp"),
        "picture.parse_picture",
        magic=re.compile(rb"\x89PNG\r\n|\xff\xd8\xff|II\*\0|MM\0\*|GIF8[79]a|RIFF.{4}WEBP|BM.{4}\0\0\0\0", re.DOTALL),
        libraries=("PIL",),
    ),
    DocumentFormat(
        "docx", "DOCX",
        "Word: headings, paragraphs, lists, tables, headers and footers, notes, comments, text boxes, charts, formulas.",
        ("docx", "docm", "dotx"), ("application/vnd.openxmlformats-officedocument.wordprocessingml.document",),
        "office.word.parse_docx", zip_parts=("word/",), zip_frame=_OPC, libraries=("lxml",),
    ),
    DocumentFormat(
        "pptx", "PPTX",
        "PowerPoint: each slide's text, tables, charts, notes and comments.",
        ("pptx", "pptm", "ppsx", "potx"),
        ("application/vnd.openxmlformats-officedocument.presentationml.presentation",),
        "office.slides.parse_pptx", zip_parts=("ppt/",), zip_frame=_OPC, libraries=("lxml",),
    ),
    DocumentFormat(
        "converted", "old office files",
        "Word and PowerPoint until 2003, Visio, Publisher and Pages, converted by LibreOffice if it is installed.",
        ("doc", "dot", "ppt", "pps", "pot", "vsd", "vsdx", "pub", "pages"),
        ("application/msword", "application/vnd.ms-powerpoint", "application/vnd.visio", "application/vnd.apple.pages"),
        "office.converted.parse_converted",
        zip_parts=("Index/Document.iwa", "visio/document.xml", "buildVersionHistory.plist"),
        ole_parts=("WordDocument", "PowerPoint Document", "VisioDocument", "Quill"),
        libraries=("olefile", "lxml", "pypdfium2"),
    ),
    DocumentFormat(
        "xls", "binary Excel files",
        "Excel 5 to 2003 and .xlsb: each row of each sheet, its values named by their columns; comments, charts, text boxes.",
        ("xls", "xlsb", "xlt"), ("application/vnd.ms-excel", "application/vnd.ms-excel.sheet.binary.macroenabled.12"),
        "office.binary_sheets.parse_binary_sheets", zip_parts=("xl/workbook.bin",), zip_frame=_OPC,
        ole_parts=("Workbook", "Book"),
        libraries=("python_calamine", "olefile", "openpyxl", "lxml"),
    ),
    DocumentFormat(
        "xlsx", "XLSX",
        "Excel: each row of each sheet, its values named by their columns; comments, charts, text boxes.",
        ("xlsx", "xlsm", "xltx"), ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",),
        "office.sheets.parse_xlsx", zip_parts=("xl/",), zip_frame=_OPC, libraries=("openpyxl", "lxml"),
    ),
    DocumentFormat(
        "opendocument", "OpenDocument",
        "Text, sheets and slides of LibreOffice: headings, paragraphs, lists, rows, notes, comments, charts.",
        ("odt", "ods", "odp", "ott", "ots", "otp", "fodt", "fods", "fodp"),
        (
            "application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.spreadsheet",
            "application/vnd.oasis.opendocument.presentation",
        ),
        "office.opendocument.parse_opendocument", zip_parts=("content.xml",), zip_frame="META-INF/manifest.xml",
        libraries=("lxml",),
    ),
    DocumentFormat(
        "rtf", "RTF",
        "Paragraphs, rows of tables, headers and footers, notes, comments; headings where the outline is marked.",
        ("rtf",), ("application/rtf", "text/rtf"),
        "office.rtf.parse_rtf", magic=re.compile(rb"\{\\rtf"), libraries=("lxml",),
    ),
    DocumentFormat(
        "epub", "EPUB",
        "The chapters in reading order.",
        ("epub",), ("application/epub+zip",),
        "epub.parse_epub", zip_parts=("META-INF/container.xml",), libraries=("lxml",),
    ),
    DocumentFormat(
        "csv", "CSV",
        "Each row, its values named by their columns; commas, semicolons or tabs.",
        ("csv", "tsv", "tab"), ("text/csv", "text/tab-separated-values"),
        "csv.parse_csv", cut_at=b"\n",
    ),
    DocumentFormat(
        "calendar", "calendars and contacts",
        "iCalendar and vCard: each event, task or person under its name, a line for each property.",
        ("ics", "vcf", "ical", "vcard"), ("text/calendar", "text/vcard", "text/x-vcard"),
        "calendar.parse_calendar", text_sign=re.compile(rb"\s*BEGIN:V", re.IGNORECASE), cut_at=b"\n",
    ),
    DocumentFormat(
        "subtitles", "subtitles",
        "The text of each cue, with the speakers; the time is in the passage's location.",
        ("srt", "vtt"), ("application/x-subrip", "text/vtt"),
        "subtitles.parse_subtitles", cut_at=b"\n",
    ),
    DocumentFormat(
        "mail", "e-mail",
        "Headers and body, with attached messages.",
        ("eml", "emlx"), ("message/rfc822",),
        "mail.internet_message.parse_mail", cut_at=b"\n",
    ),
    DocumentFormat(
        "mailbox", "mailboxes",
        "Each message is a document of its own.",
        ("mbox",), ("application/mbox",),
        None, text_sign=re.compile(MAILBOX_LINE), cut_at=b"\nFrom ",
    ),
    DocumentFormat(
        "enex", "Evernote exports",
        "Each note is a document of its own.",
        ("enex",), ("application/enex+xml",),
        "evernote.parse_note", libraries=("lxml",),
    ),
    DocumentFormat(
        "outlook", "Outlook messages",
        "Subject, people, date and body, with attached messages.",
        ("msg", "oft"), ("application/vnd.ms-outlook",),
        "mail.outlook.parse_msg", ole_parts=("__properties_version1.0",),
        libraries=("olefile", "compressed_rtf", "lxml"),
    ),
    DocumentFormat(
        "tnef", "winmail.dat",
        "The body of a message that Outlook sent.",
        ("tnef",), ("application/ms-tnef", "application/vnd.ms-tnef"),
        "mail.tnef.parse_tnef", magic=re.compile(rb"\x78\x9f\x3e\x22"), libraries=("compressed_rtf", "lxml"),
    ),
    DocumentFormat(
        "json", "JSON",
        "A document, a list of documents, a HippoRAG corpus, or a chat export: one document for each conversation and day.",
        ("json",), ("application/json",),
        None,
    ),
    DocumentFormat(
        "jsonl", "JSON lines",
        "One JSON document a line.",
        ("jsonl", "ndjson"), ("application/jsonl", "application/x-ndjson"),
        None,
    ),
    DocumentFormat(
        "gzip", "gzip",
        "One file of any of these formats, packed: read as that file.",
        ("gz",), ("application/gzip",),
        None, magic=re.compile(rb"\x1f\x8b"),
    ),
)  # fmt: skip

BY_NAME = {each.name: each for each in FORMATS}
BY_ENDING = {ending: each for each in FORMATS for ending in each.endings}
BY_MIME_TYPE = {mime_type: each for each in FORMATS for mime_type in each.mime_types}
TEXT, MARKDOWN, HTML, XML, CSV = (BY_NAME[name] for name in ("text", "markdown", "html", "xml", "csv"))
JSON, JSON_LINES, GZIP, EVERNOTE = (BY_NAME[name] for name in ("json", "jsonl", "gzip", "enex"))
MAIL, MAILBOX, WEB_ARCHIVE, OPENDOCUMENT, WIKI = (
    BY_NAME[name] for name in ("mail", "mailbox", "web_archive", "opendocument", "wiki")
)
