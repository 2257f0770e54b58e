"""Files of all formats, valid and made of pieces of their markup: a file extension, `SEPARATOR`, the content."""

import gzip
import json
from typing import Any

from hypothesis import strategies as st

from consumers.parsing.formats.registry import FORMATS
from tests.consumers.parsing.office_samples import opendocument, outlook
from tests.consumers.parsing.samples import docx, epub, flowed, pdf
from tests.fuzz.inputs import LONGEST, texts

SEPARATOR = b"\x1e"
LARGEST = 40_000
"""Maximum bytes of a file: the slowest parsers read about 100,000 bytes a second of invalid input."""
READ_TWICE = 2_000
"""Smaller files are parsed twice, and must give equal results."""
WORDS = "Mara Quill repaired the gauge at the pier. "
PIECES = {
    "html": ("<p>", "<div class=nav>", "<a href=#x>¶</a>", "<table><tr><td>", "<ul><li>", "<main>", "</div>", "<h2>",
        "&#x41;", "<!--", "<pre>"),
    "md": ("# ", "- ", "|a|b|\n|-|-|\n", "```\n", "> ", "[a](b)", "*", "<div>\n"),
    "rst": ("====\n", ".. x::\n\n   ", ".. |a| replace:: b\n", ":a:`b`", "``", "|a|", "+--+\n|  |\n+--+\n", "* ",
        "   ", "::\n\n", "`a`_ ", ".. _a: b\n", "__"),
    "tex": ("\\section{", "{", "}", "$", "$$", "\\begin{itemize}", "\\item ", "\\end{itemize}", "&", "\\\\",
        "\\begin{tabular}{ll}", "%", "\\'e", "\\title{", "\\verb|"),
    "org": ("* ", "#+BEGIN_SRC\n", "#+END_SRC\n", "|a|b|\n", "[[a][b]]", ":X:\n", ":END:\n", "*b* ", "- ",
        "#+TITLE: a\n", "/a"),
    "1": (".TH A 1\n", ".SH B\n", ".TP\n", "\\fB", "\\(bu", "\\[u", ".TS\nl l.\na\tb\n", ".TE\n", ".if n \\{\n",
        ".de X\n", "..\n", ".Op Fl a Ar b\n", ".It Fl\n", "\\*(ab", ".nf\n", "\\\n", '."', '\'\\"'),
    "xml": ("<a>", "</a>", "<title>b</title>", "<a b='c'/>", "<![CDATA[", "]]>", "<?x?>", "&lt;",
        "<a><b>1</b><c>2</c></a>"),
    "rtf": ("{\\rtf1 ", "\\par ", "{\\pict ", "\\bin9 ", "\\u-8364?", "\\'e9", "{", "}",
        "\\trowd a\\cell b\\cell\\row ", "{\\info{\\title a}}", "\\"),
    "py": ("/*", "*/", "//", "# ", '"""', "'''", "def f():\n    ", "class A:\n", "\n", "    "),
    "c": ("/*", "*/", "// ", '"', "'", "#if 0\n", "\n", "\\\n", "{"),
    "csv": (",", ";", '"', "\t", "\n", "a"),
    "eml": ("Subject: ", "Content-Type: multipart/mixed; boundary=x\n", "\n", "--x\n", "=?utf-8?b?",
        "Content-Transfer-Encoding: base64\n"),
}  # fmt: skip


def _whole() -> dict[str, bytes]:
    cell = "<table:table-cell><text:p>a</text:p></table:table-cell>"
    table = f"<table:table><table:table-row>{cell}</table:table-row></table:table>"
    properties = {"__properties_version1.0": bytes(32), "__substg1.0_1000001F": WORDS.encode("utf-16-le")}
    cells = [{"cell_type": "markdown", "source": ["# A\n", WORDS]}, {"cell_type": "code", "source": "x = 1"}]
    return {
        "pdf": pdf([flowed([WORDS * 9], "A")]),
        "docx": docx([("Heading1", "A"), ("", WORDS)], [["a", "b"], ["1", "2"]]),
        "epub": epub("A", [f"<h1>A</h1><p>{WORDS}</p>"]),
        "odt": opendocument("text", f"<text:h>A</text:h><text:p>{WORDS}</text:p>{table}"),
        "ods": opendocument("spreadsheet", table),
        "msg": outlook(properties),
        "ipynb": json.dumps({"cells": cells}).encode(),
        "txt.gz": gzip.compress(WORDS.encode() * 9, mtime=0),
    }


def _file(ending: str, content: bytes) -> bytes:
    return ending.encode() + SEPARATOR + content


def _made_of(ending: str) -> Any:
    pieces = st.sampled_from((*PIECES[ending], *PIECES[ending], WORDS, "\n", "\n\n", " "))
    mixed = st.lists(pieces | texts, max_size=40).map("".join)
    repeated = st.builds(lambda piece, count: (piece * count)[:LONGEST], pieces, st.sampled_from((50, 2_000)))
    content = st.one_of(mixed, mixed, mixed, repeated)
    return content.map(lambda text: _file(ending, text.encode("utf-8", "surrogatepass")))


endings = st.sampled_from(sorted({ending for each in FORMATS for ending in each.endings} | {"", "css", "tgz"}))
files = st.one_of(
    *(_made_of(ending) for ending in PIECES),
    st.sampled_from([_file(ending, content) for ending, content in _whole().items()]),
    st.builds(lambda ending, text: _file(ending, text.encode("utf-8", "surrogatepass")), endings, texts),
)
