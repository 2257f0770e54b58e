"""What hippod omits from the pages of real manuals (navigation, contents tables, permalinks), and what it loses (paragraphs,
code, table cells, headings).

Uses the manuals of the section `manuals`, below `HIPPOD_BENCH_MANUALS`. For each of the four sites, the code below marks which
parts of a page are not its content. A passage is navigation if more than half of its letters are in lines of these parts.
"""

import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lxml import html

from bench.support.data import MANUALS, skipped
from bench.support.tables import table
from consumers.omissions import Omissions
from consumers.parsing import Limits
from consumers.parsing.formats.markup.html import parse_html
from consumers.splitting import SplitSettings, split

SPLIT = SplitSettings()
MOST_NAVIGATION = 0.005
MOST_LOST = 0.005
KINDS = ("paragraphs", "code", "cells", "headings")


@dataclass(frozen=True)
class Site:
    """The pages of a site. `pages` is a pattern of paths below the manuals. The XPath expression `content` finds the content,
    `outside` the parts of it that do not count."""

    pages: str
    content: str
    outside: tuple[str, ...]
    beside: tuple[str, ...] = ()
    """XPath expressions of navigation outside the content."""


DOCBOOK = ("//*[@class='navheader' or @class='navfooter' or @class='toc' or @class='list-of-tables']",)
SITES = {
    "Python": Site(
        "en/python/*/*.html",
        "//div[@role='main']",
        (
            "//a[contains(@class, 'headerlink')]",
            "//*[contains(@class, 'toctree-wrapper')]",
            "//*[contains(concat(' ', @class, ' '), ' contents ')]",
        ),
        ("//div[@role='navigation' or @class='footer' or @class='sphinxsidebar' or @class='mobile-nav']", "//nav"),
    ),
    "Debian reference": Site("*/reference/*.html", "//body", DOCBOOK),
    "Debian handbook": Site(
        "*/handbook/*.html",
        "//body",
        ("//*[@id='banner' or @id='title' or contains(@class, 'docnav') or @class='toc']",),
    ),
    "Debian FAQ": Site("en/faq/*.html", "//body", DOCBOOK),
}
BLOCKS = {
    "paragraphs": ".//p[not(ancestor::table)] | .//dd[not(.//p)] | .//li[not(.//p) and not(.//li)]",
    "code": ".//pre",
    "cells": ".//td[not(.//table)]",
    "headings": ".//h1 | .//h2 | .//h3 | .//h4 | .//h5 | .//h6",
}
NAVIGATION_BLOCKS = ".//li | .//dt | .//td | .//th | .//p | .//h3 | .//h4 | self::div[@class='footer']"
SHORTEST = 8
"""Minimum number of letters of a compared block, because shorter blocks are found anywhere."""


def run(results: dict[str, Any]) -> str:
    if not MANUALS.is_dir():
        return skipped("The section", MANUALS, variable="HIPPOD_BENCH_MANUALS")
    results["html_content"] = found = {name: _measure(site, MANUALS) for name, site in SITES.items()}
    results["violations"] = [fault for name, counts in found.items() for fault in _faults(name, counts)]
    heads = ("pages", "passages", "with ¶", "navigation", *(f"{kind} lost" for kind in KINDS), "ms a page")
    rows = []
    for name, counts in found.items():
        lost = [f"{counts[f'{kind} lost']:,} of {counts[kind]:,}" for kind in KINDS]
        took = counts["took_us"] / 1000 / max(counts["pages"], 1)
        row = [f"{counts[key]:,}" for key in ("pages", "passages", "permalinks", "navigation")]
        rows.append((name, *row, *lost, f"{took:.1f}"))
    return table(("", *heads), rows)


def _measure(site: Site, folder: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for path in sorted(folder.glob(site.pages)):
        data = path.read_bytes()
        blocks, outside = _marked(data, site)
        began = time.process_time()
        read = parse_html(data, Limits(), Omissions())
        counts["took_us"] += int((time.process_time() - began) * 1e6)
        counts["pages"] += 1
        # Headings are appended at the end, because they would separate the blocks of one paragraph.
        headings = " ".join(heading for block in read.blocks for heading in block.headings)
        whole = _letters(" ".join([*(block.text for block in read.blocks), headings]))
        for kind in KINDS:
            counts[kind] += len(blocks[kind])
            counts[f"{kind} lost"] += sum(block not in whole for block in blocks[kind])
        for passage in split(read.blocks, read.title, SPLIT):
            counts["passages"] += 1
            counts["permalinks"] += "¶" in passage.text + passage.title
            lines = [_letters(line) for line in passage.text.split("\n")]
            counts["navigation"] += 2 * sum(len(each) for each in lines if each in outside) > sum(map(len, lines))
    return counts


def _marked(data: bytes, site: Site) -> tuple[dict[str, list[str]], set[str]]:
    """Returns (blocks of the content by kind, lines of the navigation), reduced to letters and digits."""
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    root = html.document_fromstring(data, parser=parser)
    content = root.xpath(site.content)[0]
    navigation = [node for path in site.beside for node in root.xpath(path)]
    for path in site.outside:
        for node in list(content.xpath(f".{path}")):
            navigation += [node] if node.tag != "a" else []
            node.drop_tree()
    blocks = {kind: _texts(content.xpath(path)) for kind, path in BLOCKS.items()}
    kept = {text for texts in blocks.values() for text in texts if texts is not blocks["headings"]}
    outside = {_letters(each.text_content()) for node in navigation for each in node.xpath(NAVIGATION_BLOCKS)}
    return blocks, outside - kept - {""}


def _texts(nodes: list[Any]) -> list[str]:
    return [text for text in (_letters(node.text_content()) for node in nodes) if len(text) >= SHORTEST]


def _letters(text: str) -> str:
    return re.sub(r"\W+", "", text)


def _faults(name: str, counts: Counter[str]) -> list[str]:
    found = [f"{name}: {counts['permalinks']:,} passages hold a permalink's mark"] if counts["permalinks"] else []
    if counts["navigation"] > MOST_NAVIGATION * counts["passages"]:
        found.append(f"{name}: {counts['navigation']:,} of {counts['passages']:,} passages are navigation")
    return found + [
        f"{name}: {counts[f'{kind} lost']:,} of {counts[kind]:,} {kind} are lost"
        for kind in KINDS
        if counts[f"{kind} lost"] > MOST_LOST * counts[kind]
    ]
