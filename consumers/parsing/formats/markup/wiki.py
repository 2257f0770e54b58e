"""Pages of MediaWiki and DokuWiki: headings, paragraphs, lists, tables, links. Parameters of templates become `name: value`."""

import re
from html import unescape

from consumers.omissions import OmissionKind
from consumers.parsing.formats.markup.link_targets import is_media, link_to, place_links
from consumers.parsing.formats.text import text_parser
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import fill_rows
from consumers.splitting import ParsedText
from consumers.types import Link

_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
# A match ends before the next tag of the same name; otherwise, each unclosed tag would search the whole page.
_VERBATIM = re.compile(
    r"(?i)(<(nowiki|pre|syntaxhighlight|source|math|file)\b[^<>]*>)((?:(?!<\2\b).)*?)(?=</\2>)", re.DOTALL
)
_VERBATIM_OF_DOKUWIKI = re.compile(r"(?i)(<(code)\b[^<>]*>)((?:(?!<code\b).)*?)(?=</\2>)|%%()()(.*?)%%", re.DOTALL)
_MARKUP = re.compile(r"[^\w\s]|_")
_GALLERY = re.compile(r"(<gallery\b[^<>]*>)((?:(?!<gallery\b).)*?)(?=</gallery>)", re.DOTALL | re.IGNORECASE)
_REDIRECT = re.compile(
    r"^[ \t]*#[ \t]*(?=(?:REDIRECT|WEITERLEITUNG|REDIRECTION|REDIRECCIÓN|RINVIA|DOORVERWIJZING|OMDIRIGERING|OMDIRIGER|"
    r"PATRZ|ПЕРЕНАПРАВЛЕНИЕ|転送|重定向)[ \t]*:?[ \t]*\[\[)",
    re.IGNORECASE | re.MULTILINE,
)
_AFTER_REDIRECT = re.compile(r"\s*#[^\[\n]{1,40}\[\[[^\]\n]*\]\](.*)", re.DOTALL)
_HEADING = re.compile(r"[ \t]*(={1,6})(?!=)[ \t]*(.*?[^=\s])[ \t]*={1,6}[ \t]*\Z")
_ITEM = re.compile(r"(?:([*#:;]+)[ \t]*|([ \t]{2,})([*-])[ \t]+)(?=\S)(.*)")
"""A list item of MediaWiki, whose depth is the number of its signs, or of DokuWiki, whose depth is its indent."""
_WIKI_LINK = re.compile(r"\[\[([^\[\]|\n]{1,2000})(?:\|([^\[\]\n]*(?:\[\[[^\[\]]*\]\][^\[\]\n]*)*))?\]\]")
_WEB_LINK = re.compile(r"\[((?:(?:https?:|ftp:)?//|mailto:)[^\s\]]+)(?:[ \t]+([^\]\n]*))?\]")
_PARAMETER = re.compile(r"\{\{\{([^{}|]*)(?:\|([^{}]*))?\}\}\}")
"""A template's parameter with its default value: `{{{name|default}}}`."""
_TEMPLATE = re.compile(r"\{\{([^{}]*)\}\}")
_BAR = re.compile(r"\|(?![^\[\]]*\]\])")
"""A bar that is not inside a link."""
_FOOTNOTE = re.compile(r"<ref(?:\s[^<>]*[^/<>])?>((?:(?!<ref\b).)*?)</ref>", re.DOTALL | re.IGNORECASE)
_FOOTNOTE_OF_DOKUWIKI = re.compile(r"\(\(((?:(?!\(\().)*?)\)\)", re.DOTALL)
_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]*)(\s[^<>]*)?/?>|~~[A-Z]{3,}[^~\n]*~~|__[A-Z]{3,}__")
_BREAKING = frozenset(
    ("br", "p", "div", "li", "ul", "ol", "dd", "dt", "tr", "td", "th", "table", "blockquote", "center", "poem", "hr")
)
"""Tags that end a line. The texts before and after any other tag may be parts of one word."""
_EMPHASIS = re.compile(r"'{2,5}")
_EMPHASIS_OF_DOKUWIKI = re.compile(r"'{2,5}|\*\*|(?<![:\w])//|//(?!\w)|(?<!_)__(?!_)")
_MEDIA_SPACES = frozenset(("file", "image", "datei", "bild", "fichier", "archivo", "media"))
_CATEGORY_SPACES = frozenset(("category", "kategorie", "catégorie", "categoría"))
_PLACEMENT = re.compile(
    r"(?:thumb|thumbnail|left|right|center|none|frame|frameless|border|upright|\d*x?\d*px)\Z", re.IGNORECASE
)
_MAX_DEPTH = 20


@text_parser
def parse_wiki(text: str, outline: Outline) -> ParsedText:
    reader = _Reader(outline, is_dokuwiki=text.lstrip().startswith(("==", "^")))
    reader.read(text)
    metadata = {"tags": reader.categories} if reader.categories else {}
    if not outline.done():
        outline.text("\n".join(reader.categories))
    # MediaWiki keeps a page's title outside its text; `wiki_export` adds it as a heading of the first level.
    title = outline.first_heading if reader.is_dokuwiki or text.startswith("= ") else ""
    return ParsedText(outline.done(), title, metadata)


class _Reader:
    """Parses a page. Templates, comments and footnotes may span several lines and are parsed first; the rest is parsed
    line by line."""

    def __init__(self, outline: Outline, *, is_dokuwiki: bool) -> None:
        self.outline = outline
        self.omissions = outline.omissions
        self.is_dokuwiki = is_dokuwiki
        self.categories: list[str] = []
        self._lines: list[str] = []
        self._first: int | None = None
        self._numbers: dict[int, int] = {}
        """The number of the last item at each depth of the open list."""
        self._last_item = 0
        self._rows: list[list[str]] = []
        self._in_table = False
        self._header_marks = ""
        """The marks of the cells of the first row: "!" or "^" for headers, "|" for values."""

    def read(self, text: str) -> None:
        lines = text.count("\n")
        text = _COMMENT.sub(lambda match: self._report(OmissionKind.COMMENT, match[1]), text)
        text = _VERBATIM.sub(_verbatim, text)
        if self.is_dokuwiki:
            text = _VERBATIM_OF_DOKUWIKI.sub(_verbatim, text)
        text = _GALLERY.sub(_gallery, _REDIRECT.sub("", text, count=1))
        for _ in range(_MAX_DEPTH):  # templates contain templates
            text, count = _TEMPLATE.subn(self._template, _PARAMETER.sub(self._parameter, text))
            if not count:
                break
        footnote = _FOOTNOTE_OF_DOKUWIKI if self.is_dokuwiki else _FOOTNOTE
        text = footnote.sub(lambda match: f" ({match[1].strip()})", text)
        same = text.count("\n") == lines  # else line numbers would differ from those of the file
        for at, line in enumerate(text.split("\n"), 1):
            self._line(line, at, at if same else None)
        self._end()

    def _line(self, line: str, at: int, number: int | None) -> None:
        """Parses line `at` of the text without templates; `number` is the line of the file, if known."""
        stripped = line.strip()
        if stripped.startswith("{|"):
            self._end()
            self._in_table = True
            self._report(OmissionKind.METADATA, _words_of_attributes(stripped[2:]))
        elif self._in_table:
            self._table_line(stripped)
        elif stripped[:1] in ("^", "|") and stripped[-1:] in ("^", "|"):
            if self._lines:
                self._end()
            if not self._rows:
                self._header_marks = stripped[0] + stripped[-1]
            self._rows.append([self._cell(cell) for cell in re.split(r"[|^](?![^\[]*\]\])", stripped[1:-1])])
        elif match := _HEADING.match(line):
            self._end()
            level = 7 - len(match[1]) if self.is_dokuwiki else len(match[1])
            text, links = self._plain(match[2])
            self.outline.heading(level, text, line=number, links=links)
        elif not stripped.strip("-"):
            self._end()
        elif match := _ITEM.match(line):
            self._end()
            self._add(f"{self._item_mark(match, at)}{match[4]}", number)
            self._end("\n")
        else:
            self._add(stripped, number)

    def _item_mark(self, item: re.Match[str], at: int) -> str:
        """Returns "- ", or the item's number if the item belongs to a numbered list of adjacent lines."""
        depth = len(item[1] or item[2])
        if at != self._last_item + 1:
            self._numbers.clear()
        self._last_item = at
        self._numbers = {each: number for each, number in self._numbers.items() if each <= depth}
        if item[1] and item[1][-1] in ":;":  # another paragraph or a term of the list around it
            return "- "
        if not (item[1] or item[3]).endswith(("#", "-")):
            self._numbers.pop(depth, None)
            return "- "
        self._numbers[depth] = self._numbers.get(depth, 0) + 1
        return f"{self._numbers[depth]}. "

    def _table_line(self, line: str) -> None:
        if line.startswith("|}"):
            self._end()
        elif line.startswith("|+"):
            self.outline.text(self._cell(line[2:]))
        elif line.startswith("|-"):
            self._rows.append([])
        elif line[:1] in ("|", "!"):
            separator = r"\|\||!!" if line[0] == "!" else r"\|\|"
            if not self._rows:
                self._rows.append([])
            if not any(self._rows[:-1]):
                self._header_marks += line[0]
            self._rows[-1] += [self._cell(_without_attributes(cell)) for cell in re.split(separator, line[1:])]
        elif line and self._rows and self._rows[-1]:
            self._rows[-1][-1] += f" {self._cell(line)}"

    def _add(self, text: str, number: int | None) -> None:
        if not self._lines:
            self._first = number
        self._lines.append(text)

    def _end(self, joint: str = "\n\n") -> None:
        text, links = self._plain("\n".join(self._lines))
        self.outline.text(text, joint, line=self._first, links=place_links(links, text))
        rows = [row for row in self._rows if row]
        if self._header_marks and "|" not in self._header_marks:
            fill_rows(self.outline, rows[1:], rows[0])
        else:
            fill_rows(self.outline, rows)
        self._lines, self._rows, self._in_table, self._header_marks = [], [], False, ""

    def _template(self, match: re.Match[str]) -> str:
        """Returns a template's parameters, one per line; in DokuWiki, the caption of a picture. Reports the name."""
        name, *parameters = (part.strip() for part in _BAR.split(match[1]))
        if self.is_dokuwiki:
            self._report(OmissionKind.PICTURE, name)
            return " ".join(parameters)
        self._report(OmissionKind.METADATA, name)
        if "\n" not in match[1] and not any("=" in each for each in parameters):
            return " ".join(parameters)  # a template within a sentence, such as {{lang|de|Kai}}
        lines = (re.sub(r"\s*=\s*", ": ", each, count=1) for each in parameters if each)
        return "\n" + "\n".join(lines) + "\n" if parameters else ""

    def _parameter(self, match: re.Match[str]) -> str:
        if not match[1].strip().isdecimal():
            self._report(OmissionKind.METADATA, match[1])
        return match[2] or ""

    def _cell(self, text: str) -> str:
        shown, links = self._plain(text)
        for link in links:
            if link.target not in shown:
                self._report(OmissionKind.METADATA, link.target)
        return " ".join(shown.split())

    def _plain(self, text: str) -> tuple[str, list[Link]]:
        """Returns the text without markup, and its links."""
        links: list[Link] = []

        def link(match: re.Match[str]) -> str:
            target, shown = match[1].strip(), (match[2] or "").strip()
            space, _, name = target.lstrip(":").partition(":")
            if space.lower() in _CATEGORY_SPACES and not target.startswith(":"):
                self.categories.append(name.strip())
                return self._report(OmissionKind.METADATA, shown)
            if space.lower() in _MEDIA_SPACES or is_media(target):
                parts = [part.strip() for part in _WIKI_LINK.sub(link, shown).split("|")]
                self._report(OmissionKind.PICTURE, target)
                return " ".join(part for part in parts if not _PLACEMENT.match(part))
            shown = shown or target.partition("#")[0] or target
            if (found := link_to(target, shown)) is not None:
                links.append(found)
            elif target != shown:
                self._report(OmissionKind.METADATA, target)
            return shown

        text = _WEB_LINK.sub(link, _WIKI_LINK.sub(link, text))
        text = _TAG.sub(self._tag, text)
        emphasis = _EMPHASIS_OF_DOKUWIKI if self.is_dokuwiki else _EMPHASIS
        return unescape(emphasis.sub("", text)).strip(), links

    def _tag(self, match: re.Match[str]) -> str:
        self._report(OmissionKind.METADATA, _words_of_attributes(match[2] or ""))
        return "\n" if (match[1] or "").lower() in _BREAKING else ""

    def _report(self, kind: OmissionKind, text: str) -> str:
        """Reports text that is left out. Returns "" as its replacement."""
        self.omissions.add_words(kind, text)
        return ""


def _without_attributes(cell: str) -> str:
    """Returns a cell without the attributes before its text."""
    attributes, bar, text = cell.partition("|")
    return text if bar and re.fullmatch(r'\s*(?:[\w-]+\s*=\s*(?:"[^"]*"|[^\s|]+)\s*)+', attributes) else cell


def _words_of_attributes(attributes: str) -> str:
    return " ".join(value.strip('"') for value in re.findall(r'=\s*("[^"]*"|[^\s"]+)', attributes))


def _verbatim(match: re.Match[str]) -> str:
    """Returns verbatim text with a character reference for each character that could be markup."""
    before, text = [each for each in match.groups() if each is not None][::2]
    return before + _MARKUP.sub(lambda sign: f"&#{ord(sign[0])};", text)


def _gallery(match: re.Match[str]) -> str:
    """Returns the lines of a gallery as pictures."""
    lines = (line.strip() for line in match[2].split("\n"))
    return match[1] + "\n\n".join(f"[[{line}]]" for line in lines if line)


def after_redirect(text: str) -> str:
    """Returns the text that follows the link of a redirect."""
    found = _AFTER_REDIRECT.match(text)
    return found[1] if found else text
