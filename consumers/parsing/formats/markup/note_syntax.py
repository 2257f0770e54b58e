"""The Markdown extensions of Obsidian, Logseq and wikis.

[Obsidian's syntax](https://help.obsidian.md/obsidian-flavored-markdown): `[[Page#Heading|text]]`, `![[embed]]`, `^block-id`,
`%%comment%%`, `==highlight==`, `> [!tip] callout`, `#tag`. Dataview and Logseq: `key:: value`, `((block reference))`.

Rules that would change the text of other Markdown apply only to notes: files that show this syntax (`is_sign_of_note`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

WIKILINK = "wikilink"
"""Type of the token for a wikilink, and key in the token's `meta`."""
ESCAPED = "escaped"
"""Type of the token for an escaped "#"."""

_WIKILINK = re.compile(
    r"!?\[\[([^\[\]\n|#]*)(?:#([^\[\]\n|]*))?(?:\|([^\[\]\n]*)\]\]|\]\](?!\((?:https?://|\.{0,2}/|#|[^\s()]+\.(?:md|html?|pdf)\b)))"
)
"""`[[text]](address)` is a link of CommonMark, not a wikilink."""
_MARKED = re.compile(
    r"(?<!=)==(?=[^\s=])(?:(?!==)[^\n])*(?<=[^\s=])==(?!=)|(?<![\w%])%%(?=[^%])[^%]*(?:%(?!%)[^%]*)*%%(?![\w%])|^%%$",
    re.MULTILINE,
)
"""A highlight, a comment, or one of the two lines around a comment of several paragraphs."""
_MARKS = "marks"
"""Key in a parser's `env`. The value is (text that was last searched for marks, positions of the marks found)."""

_UUID = r"[0-9a-f]{8}-[0-9a-f-]{27}"
_SIGN = re.compile(
    rf"\s*(?:id:: {_UUID}|logseq\.[\w.-]+::)|.*\(\({_UUID}\)\)|.*\[\w[\w -]{{0,60}}::[ \t]|"
    r"(?:.*\s)?\^(?=[a-f]*\d)[0-9a-f]{6}\s*\Z|\^[\w-]{2,}\s*\Z"
)
"""A line of text that only notes contain: an id or a reference that Obsidian or Logseq made, or a property in brackets."""
_BLOCK_ID = re.compile(r"(?:^|\s)\^(?=[\w-]*[A-Za-z])[\w-]{2,}\s*\Z")
_CALLOUT = re.compile(r"\A\s*\[!\w[\w-]*(?:\|[^\]\n]*)?\][+-]?[ \t]*")
_SIZE = re.compile(r"(?:\||\A)\s*\d{1,5}(?:x\d{1,5})?\Z")
"""The size of a picture: the whole label, or the part after a bar."""
_HASHTAG = re.compile(r"(?<![\w/#&])#(?=[\w/-]*[^\W\d_])([\w/-]{1,100})")
_INTERNAL = re.compile(
    rf"\s*(?:id:: {_UUID}|collapsed:: (?:true|false)|logseq\.[\w.-]+::.*|ls-type:: \w+|hl-(?:page|color|type|stamp):: \S+|"
    r"card-(?:last|next|ease|repeats)[\w-]*:: \S+)\s*\Z"
)
"""Block properties that Logseq adds for its own use, with values as it writes them."""
_BRACKETED = re.compile(r"[\[(](\w[\w -]{0,60})::[ \t]+([^\])\n]{0,1000})[\])]")
_PROPERTY = re.compile(r"(?<![\w:])(\w[\w ./-]{0,60})::(?=\s|\Z)")
_BLOCK_REFERENCE = re.compile(rf"\(\({_UUID}\)\)")
_MACRO = re.compile(r"\{\{embed\s*|\A\s*\}\}")
_PROPERTY_LINE = re.compile(r"([A-Za-z][\w.-]{0,60})::(?:[ \t]+(.*))?\Z")
PAGE_PROPERTIES = frozenset(("alias", "aliases", "tags", "title", "description", "icon", "public"))
"""Page properties of Logseq that are metadata. Other properties stay in the text, because Obsidian shows them."""


@dataclass(frozen=True, slots=True)
class WikiLink:
    """The parts of `[[target#heading|label]]`."""

    target: str
    heading: str
    label: str


def add_note_rules(parser: MarkdownIt) -> MarkdownIt:
    """Makes a parser recognise wikilinks, highlights and comments."""
    parser.inline.ruler.before("link", WIKILINK, _read_wikilink)
    parser.inline.ruler.before("emphasis", "marks", _read_mark)
    parser.core.ruler.before("text_join", ESCAPED, _keep_escaped_signs)
    return parser


def _read_wikilink(state: StateInline, silent: bool) -> bool:
    if not state.src.startswith(("[[", "![["), state.pos):
        return False
    match = _WIKILINK.match(state.src, state.pos)
    if match is None or match.end() > state.posMax:
        return False
    target, heading, label = ((part or "").strip() for part in match.groups())
    if not target and not heading:
        return False
    if not silent:
        token = state.push(WIKILINK, "", 0)
        # "Part#Section#Subsection" refers to the last heading.
        token.meta = {WIKILINK: WikiLink(target.removesuffix("\\"), heading.rpartition("#")[2].strip("\\"), label)}
    state.pos = match.end()
    return True


def _read_mark(state: StateInline, _silent: bool) -> bool:
    """Drops the marks around comments and highlights, but keeps the text between them. "a == b" and "50%%" contain no such
    mark."""
    if not state.src.startswith(("==", "%%"), state.pos):
        return False
    source, marks = state.env.get(_MARKS, ("", ()))
    if source is not state.src:
        marks = {place for match in _MARKED.finditer(state.src) for place in (match.start(), match.end() - 2)}
        state.env[_MARKS] = state.src, marks
    if state.pos not in marks:
        return False
    state.pos += 2
    return True


def _keep_escaped_signs(state: StateCore) -> None:
    """Gives an escaped "#" a type of its own, because it begins no tag."""
    for token in state.tokens:
        for child in token.children or ():
            if child.type == "text_special" and child.content == "#":
                child.type = ESCAPED


def is_sign_of_note(token: Token) -> bool:
    """Whether a piece of text shows that the file is a note of Obsidian, Logseq or a similar program."""
    if token.type == WIKILINK:
        return any(map(str.isalpha, token.meta[WIKILINK].target))
    return token.type == "text" and _SIGN.match(token.content) is not None


def without_block_id(text: str) -> str:
    """Returns a line without the block id at its end."""
    return _BLOCK_ID.sub("", text)


def without_callout(text: str) -> str:
    """Returns the beginning of a quote without the mark of a callout."""
    return _CALLOUT.sub("", text, count=1)


def without_size(label: str) -> str:
    """Returns a picture's description without its size in pixels."""
    return _SIZE.sub("", label)


def tags_in(text: str) -> Iterator[str]:
    """Yields the tags in a text, without "#"."""
    for match in _HASHTAG.finditer(text):
        yield match[1].strip("/-")


def line_text(text: str, *, whole: bool) -> str:
    """Returns a piece of a line of a note, with properties as `key: value` and without block references and Logseq's own
    properties.

    `whole`: the piece is the whole line.
    """
    if whole and _INTERNAL.match(text):
        return ""
    if "::" in text:
        text = _PROPERTY.sub(r"\1:", _BRACKETED.sub(r"\1: \2", text))
    if "((" in text:
        text = _BLOCK_REFERENCE.sub("", text)
    return _MACRO.sub("", text) if "{{embed" in text or "}}" in text else text


def links_in_properties(value: Any) -> Iterator[str]:
    """Yields the targets of the wikilinks in a value of the front matter: `target` or `target#heading`."""
    if isinstance(value, str):
        for match in _WIKILINK.finditer(value):
            yield f"{match[1].strip()}#{match[2].strip()}" if match[2] else match[1].strip()
    elif isinstance(value, list):
        for each in value:
            yield from links_in_properties(each)


def page_properties(text: str) -> tuple[dict[str, Any], str]:
    """Returns the properties at the top of a Logseq page, and the text with empty lines in their place."""
    lines = text.split("\n")
    found: dict[str, Any] = {}
    for number, line in enumerate(lines):
        match = _PROPERTY_LINE.match(line.strip())
        if match is None and line.strip():
            break
        if match is None or match[1].lower() not in PAGE_PROPERTIES:
            continue
        value = (match[2] or "").strip()
        values = [each.strip().removeprefix("#").removeprefix("[[").removesuffix("]]") for each in value.split(",")]
        listed = match[1].lower() in ("alias", "aliases", "tags")
        found[match[1].lower()] = [each for each in values if each] if listed else value
        lines[number] = ""
    return found, "\n".join(lines) if found else text
