"""Finds the parts of an HTML page that are not its content: navigation, contents tables, permalinks, header and footer.

The result depends only on the page's own markup: a block that every page of a site repeats is recognised by its role, element,
class or links.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.formats.markup.html_elements import LISTS, LeftOut, content_of, report

Element = Any

_ROLES = frozenset(
    """
    navigation search contentinfo menu menubar toolbar tablist directory dialog alertdialog doc-toc doc-pagelist
""".split()
)
"""WAI-ARIA and DPUB-ARIA roles of landmarks and widgets that contain no text of the page."""
# Class names of DocBook and Publican, Sphinx and its themes, MkDocs, Docusaurus, mdBook, Doxygen, Texinfo, MediaWiki.
_NAMES = frozenset(
    """
    navheader navfooter docnav sphinxsidebar sphinxsidebarwrapper wy-nav-side wy-breadcrumbs rst-footer-buttons rst-versions
    mobile-nav headerlink permalink header-anchor heading-anchor anchor-link anchorjs-link hash-link headeranchor
    viewcode-link viewcode-back md-nav md-sidebar md-header md-footer md-tabs md-skip md-source-file
    theme-doc-sidebar-container theme-doc-breadcrumbs pagination-nav nav-chapters nav-wide-wrapper mobile-nav-chapters
    navpath nav-panel mw-editsection mw-jump-link printfooter catlinks breadcrumb breadcrumbs skip-link skiplink skip-nav
    skip-to-content navbar pagination linenos lineno linenodiv line-numbers linenumber
""".split()
)
_CONTENTS_NAMES = frozenset(
    """
    toc toctree-wrapper table-of-contents tableofcontents toc-wrapper toc_container list-of-tables list-of-figures
    list-of-examples list-of-equations genindextable indextable genindex-jumpbox modindex-jumpbox
""".split()
)
_FOOTER_NAMES = frozenset(("footer", "page-footer", "site-footer"))
_WEAK_NAME = re.compile(
    r"\b(?:nav\w*|menus?|side(?:bar|nav)|topbar|topnav|footer|header|banner|breadcrumbs?|pager|langs?|languages?|share|social)\b"
    r"|(?<!\S)(?:toc|contents|index|related|links?|tabs?|top|path|quickview|quicklinks)(?!\S)"
)
"""Class names that also occur on content (DocBook's `sidebar` is a text box). They count only if links make up most of the
text."""
_WEAK_LINK_SHARE = 0.5
_SECTIONS = frozenset(("article", "section", "main", "aside", "blockquote", "details", "fieldset", "figure", "td"))
"""Elements that can have their own `header` and `footer`, which are not the page's."""
_CONTAINERS = frozenset(("ul", "ol", "dl", "table", "tr", "div", "p", "center", "section", "header", "aside"))
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_UNSEEN = frozenset(("script", "style", "head", "noscript", "svg", "template", "select", "button", "textarea", "title"))
_WHOLE = frozenset(("html", "body", "main", "article"))
_STEPS = frozenset(("prev", "previous", "next", "up", "home", "start", "contents", "toc", "index", "top"))
"""Values of `rel` for links between the pages of a book."""
_MAX_STEPS_CHARS = 400
_CONTENTS_LINK_SHARE = 0.85
_MIN_CONTENTS_LINKS = 3


@dataclass(frozen=True, slots=True)
class Content:
    """`root` contains the page's content. `left_out` maps elements below `root` that are not content to the kind of
    omission."""

    root: Element
    left_out: LeftOut


def find_content(root: Element, omissions: Omissions) -> Content:
    """Returns the content of a page without boilerplate: the page's only `main` element if it has text, otherwise the whole
    page.

    A contents table is left out, unless the page has no other text. Text outside the content is reported.
    """
    content = _find_content(root)
    if content.root is not root:
        report(OmissionKind.NAVIGATION, content_of(root, without=content.root), omissions)
    return content


def _find_content(root: Element) -> Content:
    main = _main_element(root)
    for candidate in [main] if main is root else [main, root]:
        search = _BoilerplateSearch()
        search.run(candidate)
        if search.total.text_chars:
            contents = dict.fromkeys(search.contents, OmissionKind.CONTENTS_TABLE)
            return Content(candidate, dict.fromkeys(search.boilerplate, OmissionKind.NAVIGATION) | contents)
        if search.contents:
            return Content(candidate, dict.fromkeys(search.boilerplate, OmissionKind.NAVIGATION))
    return Content(root, {})


def _main_element(root: Element) -> Element:
    found = root.xpath("//main | //*[@role='main']")
    return found[0] if len(found) == 1 else root


@dataclass(slots=True)
class _Count:
    """Counts of the text and links below one open element, excluding elements that are left out."""

    chars: int = 0
    text_chars: int = 0
    """Number of `chars` outside headings."""
    link_chars: int = 0
    links: int = 0
    steps: int = 0
    """Number of links to the previous, next or parent page."""
    fragment_links: int = 0
    """Number of links to a position in a page."""
    headings: int = 0
    path: str | None = None
    """The page that all links lead to; "?" if the links lead to several pages."""

    def add(self, below: "_Count") -> None:
        self.chars += below.chars
        self.text_chars += below.text_chars
        self.link_chars += below.link_chars
        self.links += below.links
        self.steps += below.steps
        self.fragment_links += below.fragment_links
        self.headings += below.headings
        self.see_path(below.path)

    def see_path(self, path: str | None) -> None:
        if path is not None:
            self.path = path if self.path in (None, path) else "?"

    @property
    def link_share(self) -> float:
        return self.link_chars / self.chars if self.chars else 0.0


@dataclass(slots=True)
class _BoilerplateSearch:
    """One pass over the tree with lxml's iterator, without recursion. Each element's counts are added to its parent."""

    boilerplate: list[Element] = field(default_factory=list)
    contents: list[Element] = field(default_factory=list)
    total: _Count = field(default_factory=_Count)
    """Counts of the text that is neither boilerplate nor a contents table."""
    _open: list[_Count] = field(default_factory=list)
    _sections: int = 0
    _headings: int = 0
    _named: dict[str, str] = field(default_factory=dict)

    def run(self, root: Element) -> None:
        self._open.append(self.total)
        walk = etree.iterwalk(root, events=("start", "end"))
        skipped: Element | None = None
        for event, node in walk:
            tag = node.tag if isinstance(node.tag, str) else ""
            if event == "start":
                verdict = "" if node is root else self._at_start(node, tag)
                if verdict:
                    walk.skip_subtree()
                    skipped = node
                    self._leave_out(node, verdict)
                else:
                    self._begin(node, tag)
                continue
            if node is skipped:
                skipped = None
            else:
                self._end(node, tag, node is root)
            if node is not root:
                self._text(node.tail)

    def _leave_out(self, node: Element, verdict: str) -> None:
        if verdict == "boilerplate":
            self.boilerplate.append(node)
        elif verdict == "contents":
            self.contents.append(node)

    def _begin(self, node: Element, tag: str) -> None:
        self._open.append(_Count())
        self._sections += tag in _SECTIONS
        self._headings += tag in _HEADINGS
        self._text(node.text)

    def _at_start(self, node: Element, tag: str) -> str:
        """Classifies an element by its tag, role and names: "boilerplate", "contents", "unseen", or "" for text."""
        if not tag or tag in _UNSEEN or node.get("hidden") is not None:
            return "unseen"
        if tag == "nav":
            return "boilerplate"
        if tag in _WHOLE:
            return ""
        role = node.get("role")
        if role is not None and role in _ROLES:
            return "contents" if role == "doc-toc" else "boilerplate"
        found = self._verdict_of(node)
        if found == "boilerplate":
            return found
        if not self._sections and (tag == "footer" or found == "footer"):
            return "boilerplate"
        if tag == "a" and _is_permalink(node):
            return "boilerplate"
        return ""

    def _verdict_of(self, node: Element) -> str:
        names = f"{node.get('class') or ''} {node.get('id') or ''}"
        found = self._named.get(names)
        if found is None:
            found = self._named[names] = _verdict(names.lower())
        return found

    def _end(self, node: Element, tag: str, is_root: bool) -> None:
        count = self._open.pop()
        self._sections -= tag in _SECTIONS
        self._headings -= tag in _HEADINGS
        if tag == "a" and count.chars:
            _count_link(node, count)
        if tag in _HEADINGS:
            count.headings = 1
        if not is_root and tag not in _WHOLE and self._verdict_of(node) == "contents" and not _is_chapters(count):
            self.contents.append(node)
            return
        if not is_root and tag in _CONTAINERS:
            if _is_steps(count):
                self.boilerplate.append(node)
                return
            if _is_page_contents(count) and (tag in LISTS or self._verdict_of(node) == "weak"):
                self.contents.append(node)
                return
            if self._is_weakly_named(node, tag, count):
                self.boilerplate.append(node)
                return
        self._open[-1].add(count)

    def _is_weakly_named(self, node: Element, tag: str, count: _Count) -> bool:
        if not count.links or count.link_share < _WEAK_LINK_SHARE or count.headings > 3:
            return False
        return (
            (tag in ("header", "aside") and not self._sections)
            or node.get("role") in ("banner", "complementary")
            or self._verdict_of(node) == "weak"
        )

    def _text(self, text: str | None) -> None:
        if not text:
            return
        chars = sum(map(len, text.split()))
        self._open[-1].chars += chars
        if not self._headings:
            self._open[-1].text_chars += chars


def _verdict(names: str) -> str:
    tokens = names.split()
    if not _NAMES.isdisjoint(tokens):
        return "boilerplate"
    if not _CONTENTS_NAMES.isdisjoint(tokens):
        return "contents"
    if not _FOOTER_NAMES.isdisjoint(tokens):
        return "footer"
    return "weak" if _WEAK_NAME.search(names) else ""


def _is_permalink(node: Element) -> bool:
    """Whether a link leads to a position in a page and its text has no letter or digit, such as ¶ or #."""
    text = node.text
    return (
        text is not None
        and len(text) <= 3
        and not any(map(str.isalnum, text))
        and "#" in (node.get("href") or "")
        and not len(node)
    )


def _count_link(node: Element, count: _Count) -> None:
    count.link_chars = count.chars
    count.links = 1
    rel = (node.get("rel") or "").lower()
    count.steps = int(
        not _STEPS.isdisjoint(rel.split()) or node.get("accesskey") in ("n", "p", "u", "h", "N", "P", "U", "H")
    )
    path, _, fragment = (node.get("href") or "").partition("#")
    count.fragment_links = int(bool(fragment))
    count.see_path(path)


def _is_steps(count: _Count) -> bool:
    """Whether an element is a bar of links to the previous, next and parent pages."""
    return (
        (count.steps > 1 or (count.steps == 1 and count.link_share >= _WEAK_LINK_SHARE))
        and count.steps * 2 >= count.links
        and count.chars <= _MAX_STEPS_CHARS
        and not count.headings
    )


def _is_chapters(count: _Count) -> bool:
    """Whether an element whose name suggests a contents table contains the chapters, as in Sphinx's single-page output."""
    return count.headings > 0 and count.link_share < _WEAK_LINK_SHARE


def _is_page_contents(count: _Count) -> bool:
    """Whether an element consists almost only of links to positions in its own page."""
    return (
        count.links >= _MIN_CONTENTS_LINKS
        and count.fragment_links == count.links
        and count.path == ""
        and not count.headings
        and count.link_share >= _CONTENTS_LINK_SHARE
    )
