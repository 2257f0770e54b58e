"""reStructuredText by docutils. Nothing is included, fetched or executed.

Directives and roles that docutils does not know (Sphinx has hundreds) are replaced by their text.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

from docutils import frontend, nodes
from docutils.parsers.rst import Directive, Parser, directives, roles
from docutils.utils import new_document

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text, decode
from consumers.parsing.formats.text import parse_text, within_limits
from consumers.parsing.limits import Limits
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import fill_rows
from consumers.splitting import ParsedText

_DIRECTIVE = re.compile(r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([A-Za-z][\w:.+-]{0,60})[ \t]?::", re.MULTILINE)
_ROLE = re.compile(r":([A-Za-z][\w:.+-]{0,60}):`|`:([A-Za-z][\w:.+-]{0,60}):")
_MAX_NAMES = 300
_MAX_CHARS = 1 << 20
"""Maximum number of characters. A longer text is not written by hand and is parsed as plain text: docutils parses only about
30,000 characters per second."""
_MAX_LINE_CHARS = 10_000
"""Maximum number of characters in a line. docutils refuses texts with longer lines; such texts are parsed as plain
text."""
_TARGET = re.compile(r"\s*<[^<>]*>\Z", re.DOTALL)
_SILENT = frozenset(
    """
    toctree index highlight default-domain tabularcolumns currentmodule py:currentmodule module py:module sectionauthor
    moduleauthor codeauthor literalinclude only ifconfig autosummary program rst-class cssclass highlightlang
""".split()
)
"""Directives whose arguments are not text. The content of `module` and `only` is parsed."""
_LITERAL = frozenset(
    "code-block sourcecode productionlist doctest testcode testoutput testsetup prompt parsed-literal".split()
)
_LISTS = {"toctree": OmissionKind.NAVIGATION, "autosummary": OmissionKind.NAVIGATION, "index": OmissionKind.METADATA}
"""Directives whose content is a list for programs."""
_REFUSED = 2
"""Level of docutils' messages about source that it did not understand. Messages of lower levels only inform."""
_CAPTIONS = ("caption", "title", "alt", "header", "synopsis")
"""Options of directives that are text."""
_WITHOUT_TEXT = (nodes.target, nodes.pending)
_PROPERTIES = frozenset(("author", "date", "version", "copyright", "status", "description", "keywords"))
_FOR_SPHINX = frozenset(("orphan", "tocdepth", "nocomments", "nosearch", "no-search"))
"""Fields at the top of a page that are instructions for Sphinx."""
_NOT_READ = re.compile(r"[ \t]*\.\.[ \t]+(?:raw|include)::|[^\n]*\n[ \t]+:(?:file|url):")
_MAX_REPLACEMENT_CHARS = 300


def parse_restructured_text(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    text = decode(data)
    if len(text) > _MAX_CHARS or max(map(len, text.split("\n"))) > _MAX_LINE_CHARS:
        return parse_text(data, limits, omissions)
    text = within_limits(text, limits, omissions)
    _register_unknown_names(text)
    document = new_document("document", _settings().copy())
    Parser().parse(text, document)
    outline = Outline(limits.text_chars, omissions)
    _replace_substitutions(document, omissions)
    _remove_messages(document)
    walk = _Walk(outline)
    for field in list(document.findall(nodes.field)):
        name = field[0].astext().lower()
        if not isinstance(field.parent.parent, nodes.document):
            continue
        if name in _FOR_SPHINX:
            omissions.add(OmissionKind.METADATA, clean_text(field.astext()))
            field.parent.remove(field)
        elif name in _PROPERTIES:
            walk.metadata[name] = clean_text(field[1].astext())[:1000]
    walk.run(document)
    return outline.document(metadata=walk.metadata)


def _remove_messages(document: Any) -> None:
    """Removes docutils' messages about the text. A message in a cell or list item is replaced by the source that it quotes."""
    for message in list(document.findall(nodes.system_message)):
        above = message.parent
        while not isinstance(above, nodes.entry | nodes.list_item | nodes.document):
            above = above.parent
        if message["level"] < _REFUSED:
            message.parent.remove(message)
        elif not isinstance(above, nodes.document):
            place = message.parent.index(message)
            quoted = [
                nodes.paragraph("", "", nodes.Text(each.astext())) for each in message.findall(nodes.literal_block)
            ]
            message.parent[place : place + 1] = quoted


def _replace_substitutions(document: Any, omissions: Omissions) -> None:
    """Replaces references to substitutions by their text, one level deep. Unused substitutions are reported."""
    texts = {name: clean_text(node.astext()) for name, node in document.substitution_defs.items()}
    unused = dict(texts)
    for reference in document.findall(nodes.substitution_reference):
        name = document.substitution_names.get(reference["refname"].lower(), reference["refname"])
        if len(text := texts.get(name, "")) <= _MAX_REPLACEMENT_CHARS and text:
            reference.children = [nodes.Text(text)]
            unused.pop(name, None)
    for text in unused.values():
        omissions.add(OmissionKind.OTHER, text)


@cache
def _settings() -> Any:
    settings = frontend.get_default_settings(Parser)
    settings.file_insertion_enabled = False
    settings.raw_enabled = False
    settings.report_level = 5
    settings.halt_level = 5
    settings.syntax_highlight = "none"
    settings.warning_stream = False
    return settings


def _register_unknown_names(text: str) -> None:
    """Registers the directives and roles that docutils does not know. docutils offers no other way to handle them."""
    known = _settings()
    roles._roles.clear()  # defined by earlier documents
    for name in sorted({match[1].lower() for match in _DIRECTIVE.finditer(text)})[:_MAX_NAMES]:
        found, _ = directives.directive(name, _english(), new_document("names", known))
        if found is None:
            directives.register_directive(name, _Unknown)
    for name in sorted({(match[1] or match[2]).lower() for match in _ROLE.finditer(text)})[:_MAX_NAMES]:
        found, _ = roles.role(name, _english(), 0, new_document("names", known).reporter)
        if found is None:
            roles.register_local_role(name, _unknown_role)


@cache
def _english() -> Any:
    from docutils.parsers.rst.languages import get_language

    return get_language("en", None)


def _unknown_role(_name: str, rawtext: str, text: str, *_: Any, **__: Any) -> tuple[list[Any], list[Any]]:
    """Returns the text of a role: the title of `title <target>`, the last name of `~package.module.name`."""
    words = _TARGET.sub("", nodes.unescape(text)) or text
    if words.startswith("~"):
        words = words[1:].rpartition(".")[2]
    return [nodes.inline(rawtext, words.lstrip("!"))], []


class _Unknown(Directive):  # type: ignore[misc] # docutils has no types
    """An unknown directive, for example of Sphinx. The directive's argument becomes a line, its content becomes
    text."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = defaultdict(lambda: str, {"class": str})

    def run(self) -> list[Any]:
        found: list[Any] = []
        text = "\n".join(self.content)
        for line in (*self.arguments, *(self.options.get(name, "") for name in _CAPTIONS)):
            line = " ".join(line.split())
            if self.name in _SILENT and line in self.arguments:
                found.append(nodes.comment(line, line, kind=OmissionKind.METADATA))
            elif line and not (self.name in _LITERAL and line in self.arguments):
                parsed, messages = self.state.inline_text(line, self.lineno)
                found += [nodes.paragraph(line, "", *parsed), *messages]
        if text and self.name in _LITERAL:
            found.append(nodes.literal_block(text, text))
        elif text and self.name in _LISTS:
            found.append(nodes.comment(text, text, kind=_LISTS[self.name]))
        elif text:
            inner = nodes.container()
            self.state.nested_parse(self.content, self.content_offset, inner)
            found += inner.children
        return found


class _Walk:
    """Walks the document depth first with an explicit stack, because sections and lists nest without limit."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.metadata: dict[str, Any] = {}

    def run(self, document: Any) -> None:
        stack: list[tuple[Any, int, str]] = [(document, 0, "\n\n")]
        while stack:
            node, level, joint = stack.pop()
            if isinstance(node, _WITHOUT_TEXT) or self._reported(node):
                continue
            line = node.line if isinstance(getattr(node, "line", None), int) else None
            if isinstance(node, nodes.section):
                stack += [(child, level + 1, "\n\n") for child in reversed(node.children)]
            elif isinstance(node, nodes.title):
                if isinstance(node.parent, nodes.section):
                    self.outline.heading(level, clean_text(node.astext()), line=line)
                else:
                    self.outline.text(clean_text(node.astext()), line=line)
            elif isinstance(node, nodes.table):
                self._table(node)
            elif isinstance(node, nodes.literal_block | nodes.doctest_block | nodes.line_block):
                self.outline.text(clean_text(node.astext()), joint)
            elif isinstance(node, nodes.image):
                self.outline.text(clean_text(node.get("alt", "")), joint)
            elif isinstance(node, nodes.list_item):
                self._item(_mark(node), node.children, level, stack)
            elif isinstance(node, nodes.footnote | nodes.citation):
                label = node.children[0].astext() if isinstance(node.children[0], nodes.label) else ""
                self._item(f"[{label}] " if label else "", node.children[bool(label) :], level, stack)
            elif isinstance(node, nodes.field):
                self.outline.text(clean_text(f"{node[0].astext()}: {' '.join(node[1].astext().split())}"), "\n")
            elif isinstance(node, nodes.term | nodes.option_group):
                self.outline.text(clean_text(node.astext()), "\n\n")
            elif isinstance(node, nodes.TextElement):
                self.outline.text(clean_text(node.astext()), joint, line=line)
            else:
                inside = "\n" if isinstance(node, nodes.definition) else "\n\n"
                stack += [(child, level, inside) for child in reversed(node.children)]

    def _reported(self, node: Any) -> bool:
        """Whether a node is left out. Reports the text of such a node."""
        omissions = self.outline.omissions
        if isinstance(node, nodes.comment):
            omissions.add(node.get("kind", OmissionKind.COMMENT), clean_text(node.astext()))
        elif isinstance(node, nodes.topic) and "contents" in node["classes"]:
            omissions.add(OmissionKind.CONTENTS_TABLE, clean_text(node.astext()))
        elif isinstance(node, nodes.meta):
            name, content = str(node.get("name", "")).lower(), clean_text(node.get("content", ""))
            if name in _PROPERTIES:
                self.metadata[name] = content[:1000]
            else:
                omissions.add(OmissionKind.METADATA, content)
        elif isinstance(node, nodes.system_message) and not node.astext().startswith("Title "):  # titles are text
            for source in node.findall(nodes.literal_block):
                self._add_refused(source.astext())
        else:
            return isinstance(node, nodes.substitution_definition | nodes.system_message)
        return True

    def _add_refused(self, source: str) -> None:
        """Adds source that docutils refused, as text. Directives that include files or raw content are reported
        instead."""
        if _NOT_READ.match(source):
            self.outline.omissions.add(OmissionKind.EMBEDDED, clean_text(source))
        else:
            self.outline.text(clean_text(source))

    def _item(self, mark: str, children: list[Any], level: int, stack: list[tuple[Any, int, str]]) -> None:
        first, *others = children or [None]
        if isinstance(first, nodes.paragraph):
            self.outline.text(clean_text(f"{mark}{first.astext()}"), "\n", line=first.line)
        else:
            self.outline.text(mark.strip("- "), "\n")
            others = [first, *others] if first is not None else []
        stack += [(child, level, "\n") for child in reversed(others)]

    def _table(self, node: Any) -> None:
        heads = [row for head in node.findall(nodes.thead) for row in head.findall(nodes.row)]
        header, *more = [[clean_text(entry.astext()) for entry in row.children] for row in heads] or [[]]
        for child in node.children:
            if isinstance(child, nodes.title):
                self.outline.text(clean_text(child.astext()))
        rows = [row for body in node.findall(nodes.tbody) for row in body.findall(nodes.row)]
        cells = [[clean_text(entry.astext()) for entry in row.children] for row in rows]
        if more:  # the last header row names the columns; header rows above it name groups of columns
            self.outline.text("; ".join(name for row in (header, *more[:-1]) for name in row if name))
            header = more[-1]
        fill_rows(self.outline, cells, header)


def _mark(item: Any) -> str:
    """Returns the number or letter of a list item with its punctuation; "- " for an item without one."""
    items = item.parent
    if not isinstance(items, nodes.enumerated_list):
        return "- "
    number = items.get("start", 1) + items.index(item)
    first = {"loweralpha": "a", "upperalpha": "A"}.get(items["enumtype"], "")
    shown = chr(ord(first) + number - 1) if first and number <= 26 else str(number)
    return f"{items['prefix']}{shown}{items['suffix']} "
