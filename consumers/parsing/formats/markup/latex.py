"""LaTeX by pylatexenc: sections become headings; formulas are approximated in plain text."""

import re
from functools import cache, partial
from typing import Any

from pylatexenc.latex2text import (
    EnvironmentTextSpec,
    LatexNodes2Text,
    MacroTextSpec,
    SpecialsTextSpec,
    get_default_latex_context_db,
)
from pylatexenc.latexwalker import get_default_latex_context_db as get_default_walker_context
from pylatexenc.macrospec import EnvironmentSpec, MacroSpec

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.office.numbering import letters, roman
from consumers.parsing.formats.text import text_parser
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import fill_rows
from consumers.splitting import ParsedText, paragraphs

_SECTIONS = {
    "part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5, "subparagraph": 6,
}  # fmt: skip
_MARK = "\x02"
"""Mark around a heading; the level follows the first mark. No text contains the mark, because decoding removes control
characters.
"""
_CELL = "\x03"
_ROW = "\x04"
_MARKED = re.compile(rf"{_MARK}(\d)([^{_MARK}]*){_MARK}")
_SILENT = frozenset(
    """
    label nocite bibliography bibliographystyle documentclass usepackage RequirePackage selectlanguage pagestyle thispagestyle
    setlength addlength setcounter addcounter vspace hspace graphicspath newpage clearpage tableofcontents maketitle hline
    toprule midrule bottomrule cline centering ref pageref hphantom vphantom definecolor providecolor colorlet color pagecolor
    rowcolors
""".split()
)
"""Commands whose arguments are not text."""
_CITATIONS = """
    cite citet citep citealt citealp citeauthor citefullauthor citeyear citeyearpar Citet Citep Citealt Citealp Citeauthor
    parencite textcite autocite footcite
""".split()
_HEAD = ("title", "author", "date")
_REPORTED = {
    **dict.fromkeys(("newcommand", "renewcommand", "providecommand", "DeclareMathOperator"), OmissionKind.OTHER),
    **dict.fromkeys(("newenvironment", "renewenvironment", "provideenvironment"), OmissionKind.OTHER),
    **dict.fromkeys(("index", "hypersetup"), OmissionKind.METADATA),
    **dict.fromkeys(("input", "include", "subfile"), OmissionKind.EMBEDDED),
}
"""Commands whose arguments are not printed. The arguments are reported."""
_SPACED = ("itemize", "enumerate", "description", "quote", "abstract", "center", "figure", "table")
_TABLES = {
    "tabular": "[{", "tabular*": "{[{", "tabularx": "{[{", "tabulary": "{[{", "longtable": "[{", "supertabular": "[{",
    "xltabular": "{[{",
}  # fmt: skip
"""Environments of tables, with their arguments, which are not text."""
_RULE = re.compile(r"\\cmidrule\s*(?:\[[^\[\]\n]*\])?\s*(?:\([^()\n]*\))?\s*\{[^{}\n]*\}")
"""A line below some columns; pylatexenc does not parse its argument in parentheses."""
_MAX_SPAN = 100
"""Maximum number of columns of a `multicolumn`, which bounds the text that a short command makes."""
_LISTS = frozenset(("enumerate", "itemize", "description"))
_START = re.compile(r"\bstart\s*=\s*(\d{1,6})")
_LAYOUTS = frozenset(("figure", "table", "array", "enumerate", "itemize", "alignat"))
"""Names, without the star, of environments whose arguments are not text."""
_ALTERNATIVE = re.compile(r"\balt\s*=\s*(?:\{([^{}]*)\}|([^,{}\]]*))")
_DOCUMENT = re.compile(r"\\begin\s*\{document\}(.*?)(?:\\end\s*\{document\}|\Z)", re.DOTALL)


@text_parser
def parse_latex(text: str, outline: Outline) -> ParsedText:
    converter = _Converter(outline.omissions)
    found = _DOCUMENT.search(text)
    if found:
        converter.report(OmissionKind.METADATA, converter.plain(text[: found.start()]))
    for block in paragraphs(converter.plain(found[1] if found else text)):
        _fill(block.text, outline)
    if found:
        converter.report(OmissionKind.HIDDEN, converter.plain(text[found.end() :]))
    head = converter.head
    metadata: dict[str, Any] = {name: head[name][:1000] for name in ("author", "date") if head.get(name)}
    return outline.document(head.get("title", "")[:300], metadata)


def _fill(text: str, outline: Outline) -> None:
    """Adds a block to the outline: headings open sections, and table rows become separate blocks."""
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
    while len(rows) > 1 and sum(map(bool, rows[0])) < 2:  # a caption or the name of a group of columns
        outline.text("".join(rows.pop(0)))
    fill_rows(outline, rows)


class _Converter(LatexNodes2Text):  # type: ignore[misc] # pylatexenc has no types
    """Converts LaTeX to text. Arguments of commands that pylatexenc does not print become text or are reported."""

    def __init__(self, omissions: Omissions) -> None:
        super().__init__(_text_context(), math_mode="text", keep_comments=False, strict_latex_spaces=False)
        self.omissions = omissions
        self.head: dict[str, str] = {}
        self.tables = 0
        """Number of open tables."""
        self.lists: list[int | None] = []
        """The number of the last item in each open list; None in lists without numbers."""

    def plain(self, source: str) -> str:
        source = _RULE.sub("", source)
        printed: str = self.latex_to_text(source, tolerant_parsing=True, latex_context=_walker_context())
        printed = printed.replace(_MARK, "\ue002").replace(_CELL, "\ue003")
        return clean_text(printed).replace("\ue002", _MARK).replace("\ue003", _CELL)

    def report(self, kind: OmissionKind, text: str) -> None:
        self.omissions.add_words(kind, clean_text(_MARKED.sub(r" \2 ", text)))

    def arguments(self, node: Any, *, optional: bool | None = None) -> list[str]:
        """Returns the arguments of a command. `optional`: True for arguments in brackets only, False for arguments in braces
        only."""
        given = node.nodeargd.argnlist if node.nodeargd is not None and node.nodeargd.argnlist else ()
        return [
            self.nodelist_to_text([each])
            for each in given
            if each is not None
            and getattr(each, "chars", "") != "*"
            and optional in (None, getattr(each, "delimiters", ("",))[0] == "[")
        ]

    def macro_node_to_text(self, node: Any) -> str:
        name = node.macroname
        if name in _REPORTED:
            self.report(_REPORTED[name], " ".join(self.arguments(node)))
            return ""
        spec = self.latex_context.get_macro_spec(name)
        if name not in _SILENT and (spec is None or (spec.discard and not spec.simplify_repl)):
            return " ".join(self.arguments(node))
        printed: str = super().macro_node_to_text(node)
        return printed

    def environment_node_to_text(self, node: Any) -> str:
        if node.environmentname == "comment":
            self.report(OmissionKind.COMMENT, self.nodelist_to_text(node.nodelist))
            return ""
        if node.environmentname in _TABLES:
            return self._table(node)
        is_list = node.environmentname.rstrip("*") in _LISTS
        if is_list:
            start = _START.search(" ".join(self.arguments(node)))
            numbered = node.environmentname.startswith("enumerate")
            self.lists.append(int(start[1]) - 1 if start else 0) if numbered else self.lists.append(None)
        printed: str = super().environment_node_to_text(node)
        if is_list:
            self.lists.pop()
        layout = node.environmentname.rstrip("*") in _LAYOUTS
        named = "" if layout else " ".join(self.arguments(node, optional=True))
        return f"\n\n({named}) {printed.lstrip()}" if named else printed

    def _table(self, node: Any) -> str:
        """Returns a table with one line per row. A table inside a cell becomes one line without separate cells."""
        self.tables += 1
        printed = self.nodelist_to_text(node.nodelist)
        self.tables -= 1
        rows = "\n".join(" ".join(row.split()) for row in printed.split(_ROW))
        return rows if self.tables else f"\n\n{rows}\n\n"

    def item_number(self) -> str:
        """Returns the number of the next item in LaTeX's default form for the depth: "1.", "(a)", "i." or "A."; "" in a list
        without numbers."""
        number = self.lists[-1] if self.lists else None
        if number is None:
            return ""
        number += 1
        self.lists[-1] = number
        depth = sum(each is not None for each in self.lists)
        return (f"{number}.", f"({letters(number)})", f"{roman(number)}.", f"{letters(number).upper()}.")[
            min(depth, 4) - 1
        ]

    def comment_node_to_text(self, node: Any) -> str:
        self.report(OmissionKind.COMMENT, node.comment)
        printed: str = super().comment_node_to_text(node)
        return printed


@cache
def _walker_context() -> Any:
    context = get_default_walker_context()
    macros = [
        MacroSpec("href", "{{"),
        MacroSpec("texorpdfstring", "{{"),
        MacroSpec("index", "[{"),
        MacroSpec("include", "{"),
    ]
    macros += [MacroSpec("subparagraph", "*[{"), MacroSpec("subfile", "{")]
    macros += [MacroSpec("multicolumn", "{{{"), MacroSpec("multirow", "[{[{[{")]
    macros += [MacroSpec(name, "*[[{") for name in _CITATIONS if not context.get_macro_spec(name)]
    environments = [EnvironmentSpec(name, arguments) for name, arguments in _TABLES.items()]
    context.add_context_category("hippod", prepend=True, macros=macros, environments=environments)
    return context


@cache
def _text_context() -> Any:
    context = get_default_latex_context_db()
    context.add_context_category(
        "hippod",
        prepend=True,
        macros=[
            *(MacroTextSpec(name, simplify_repl=_heading) for name in _SECTIONS),
            *(MacroTextSpec(name, simplify_repl="") for name in _SILENT),
            *(MacroTextSpec(name, simplify_repl=_citation) for name in _CITATIONS),
            *(MacroTextSpec(name, simplify_repl=partial(_in_head, name)) for name in _HEAD),
            MacroTextSpec("item", simplify_repl=_item),
            MacroTextSpec("footnote", simplify_repl=_footnote),
            MacroTextSpec("href", simplify_repl=_last),
            MacroTextSpec("multirow", simplify_repl=_last),
            MacroTextSpec("multicolumn", simplify_repl=_wide_cell),
            MacroTextSpec("\\", simplify_repl=_line_end),
            MacroTextSpec("includegraphics", simplify_repl=_picture),
            MacroTextSpec("verb", simplify_repl=_verbatim),
        ],
        environments=[
            *(EnvironmentTextSpec(name, simplify_repl=_verbatim_block) for name in ("verbatim", "lstlisting")),
            *(EnvironmentTextSpec(name, simplify_repl="\n\n%s\n\n") for name in _SPACED),
        ],
        specials=[SpecialsTextSpec("&", simplify_repl=_cell_end)],
    )
    return context


def _last(node: Any, l2tobj: Any) -> str:
    """Returns the last argument in braces as text, or "" if there is none.

    Each argument is converted only once; otherwise nested arguments would take exponential time.
    """
    given = l2tobj.arguments(node, optional=False)
    return str(given[-1]).strip() if given else ""


def _heading(node: Any, l2tobj: Any) -> str:
    for short in l2tobj.arguments(node, optional=True):
        l2tobj.report(OmissionKind.CONTENTS_TABLE, short)
    return f"\n\n{_MARK}{_SECTIONS[node.macroname]}{' '.join(_last(node, l2tobj).split())}{_MARK}\n\n"


def _in_head(name: str, node: Any, l2tobj: Any) -> str:
    text = " ".join(clean_text(_last(node, l2tobj)).split())
    l2tobj.head[name] = "; ".join(filter(None, (l2tobj.head.get(name), text)))
    return ""


def _citation(node: Any, l2tobj: Any) -> str:
    notes = [note.strip() for note in l2tobj.arguments(node, optional=True) if note.strip()]
    return f"[{', '.join(notes)}]" if notes else ""


def _item(node: Any, l2tobj: Any) -> str:
    label = " ".join(l2tobj.arguments(node)).strip()
    return f"\n- {label} " if label else f"\n{l2tobj.item_number() or '-'} "


def _cell_end(_node: Any, l2tobj: Any) -> str:
    return _CELL if l2tobj.tables == 1 else " "


def _line_end(_node: Any, l2tobj: Any) -> str:
    return (_ROW if l2tobj.tables == 1 else " ") if l2tobj.tables else "\n"


def _wide_cell(node: Any, l2tobj: Any) -> str:
    """Returns the cell of a `multicolumn`, and an empty cell for each further column."""
    wide, *_, text = l2tobj.arguments(node, optional=False) or ("", "")
    further = min(int(wide), _MAX_SPAN) - 1 if wide.strip().isdecimal() else 0
    return f"{text}{_cell_end(node, l2tobj) * further}"


def _picture(node: Any, l2tobj: Any) -> str:
    options = " ".join(l2tobj.arguments(node, optional=True))
    if found := _ALTERNATIVE.search(options):
        return f" {found[1] or found[2] or ''} "
    l2tobj.report(OmissionKind.PICTURE, _last(node, l2tobj))
    return ""


def _verbatim(node: Any, l2tobj: Any) -> str:
    text = getattr(node.nodeargd, "verbatim_text", None)
    return str(text if text is not None else l2tobj.nodelist_to_text(getattr(node, "nodelist", [])))


def _verbatim_block(node: Any, l2tobj: Any) -> str:
    return f"\n\n{_verbatim(node, l2tobj)}\n\n"


def _footnote(node: Any, l2tobj: Any) -> str:
    return f" ({_last(node, l2tobj)})"
