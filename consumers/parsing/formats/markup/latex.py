"""LaTeX by pylatexenc: sections as headings, the text that is printed, formulas as near as plain text comes."""

import re
from functools import cache
from typing import Any

from pylatexenc.latex2text import (
    EnvironmentTextSpec,
    LatexNodes2Text,
    MacroTextSpec,
    SpecialsTextSpec,
    get_default_latex_context_db,
)

from consumers.omissions import Omissions
from consumers.parsing.decoding import clean_text, decode
from consumers.parsing.formats.text import within_limits
from consumers.parsing.limits import Limits
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import is_header, row_text
from consumers.splitting import ParsedText, paragraphs

_SECTIONS = {"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5}
_MARK = "\x02"
"""Before and after a heading, with its level between: no text holds it, as decoding takes control characters out."""
_CELL = "\x03"
_MARKED = re.compile(rf"{_MARK}(\d)([^{_MARK}]*){_MARK}")
_SILENT_WORDS = """
    label includegraphics cite citep citet citeauthor citeyear nocite bibliography bibliographystyle usepackage input include
    pagestyle thispagestyle vspace hspace index graphicspath newpage clearpage tableofcontents maketitle hline toprule midrule
    bottomrule cline centering ref
"""
_DOCUMENT = re.compile(r"\\begin\s*\{document\}(.*?)(?:\\end\s*\{document\}|\Z)", re.DOTALL)
_HEAD = re.compile(r"\\(title|author|date)\s*(?:\[[^\]]*\])?\s*\{((?:[^{}]|\{[^{}]*\})*)\}")


def parse_latex(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    text = within_limits(decode(data), limits, omissions)
    found = _DOCUMENT.search(text)
    head = {name: " ".join(_plain(value).split()) for name, value in _HEAD.findall(text)}
    outline = Outline(limits.text_chars, omissions)
    for block in paragraphs(_plain(found[1] if found else text)):
        _fill(block.text, outline)
    metadata: dict[str, Any] = {name: head[name][:1000] for name in ("author", "date") if head.get(name)}
    return ParsedText(outline.done(), head.get("title", "")[:300] or outline.first_heading, metadata)


def _fill(text: str, outline: Outline) -> None:
    """A block's rows of tables one by one, everything else as it is; headings open sections."""
    start = 0
    for match in _MARKED.finditer(text):
        _text(text[start : match.start()], outline)
        outline.heading(int(match[1]), match[2])
        start = match.end()
    _text(text[start:], outline)


def _text(text: str, outline: Outline) -> None:
    text = text.replace(_MARK, "")
    if _CELL not in text:
        outline.text("\n".join(" ".join(line.split()) for line in text.split("\n")))
        return
    rows = [[cell.strip() for cell in line.split(_CELL)] for line in text.split("\n") if line.strip()]
    header = rows[0] if len(rows) > 1 and is_header(rows[0]) else []
    for number, row in enumerate(rows[1:] if header else rows, 1):
        outline.text(row_text(header, row), "\n\n" if number == 1 else "\n", row=number)


def _plain(source: str) -> str:
    printed: str = _converter().latex_to_text(source, tolerant_parsing=True)
    return (
        clean_text(printed.replace(_MARK, "\ue002").replace(_CELL, "\ue003"))
        .replace("\ue002", _MARK)
        .replace("\ue003", _CELL)
    )


@cache
def _converter() -> Any:
    context = get_default_latex_context_db()
    context.add_context_category(
        "hippod",
        prepend=True,
        macros=[
            *(MacroTextSpec(name, simplify_repl=_heading) for name in _SECTIONS),
            *(MacroTextSpec(name, simplify_repl="") for name in _SILENT_WORDS.split()),
            MacroTextSpec("item", simplify_repl=_item),
            MacroTextSpec("footnote", simplify_repl=_footnote),
        ],
        environments=[
            *(EnvironmentTextSpec(name, simplify_repl=_verbatim) for name in ("verbatim", "lstlisting")),
            *_spaced_environments(),
        ],
        specials=[SpecialsTextSpec("&", simplify_repl=_CELL)],
    )
    return LatexNodes2Text(context, math_mode="text", keep_comments=False, strict_latex_spaces=False)


def _spaced_environments() -> list[Any]:
    names = ("itemize", "enumerate", "description", "quote", "abstract", "center", "figure", "table")
    return [EnvironmentTextSpec(name, simplify_repl="\n\n%s\n\n") for name in names]


def _argument(node: Any, converter: Any) -> str:
    """The last argument of a macro as text; "" where it has none."""
    given = node.nodeargd.argnlist if node.nodeargd is not None else None
    printed: str = converter.nodelist_to_text([given[-1]]) if given and given[-1] is not None else ""
    return printed


def _heading(node: Any, l2tobj: Any) -> str:
    return f"\n\n{_MARK}{_SECTIONS[node.macroname]}{' '.join(_argument(node, l2tobj).split())}{_MARK}\n\n"


def _item(node: Any, l2tobj: Any) -> str:
    label = _argument(node, l2tobj).strip()
    return f"\n- {label} " if label else "\n- "


def _verbatim(node: Any, l2tobj: Any) -> str:
    text = getattr(node.nodeargd, "verbatim_text", None)
    return f"\n\n{text if text is not None else l2tobj.nodelist_to_text(node.nodelist)}\n\n"


def _footnote(node: Any, l2tobj: Any) -> str:
    return f" ({_argument(node, l2tobj).strip()})"
