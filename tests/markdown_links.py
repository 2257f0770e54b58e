"""Links of Markdown pages to files beside them, and to headings in those."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path


def links(page: Path) -> Iterator[str]:
    """What a page links to beside it, without what is inside code."""
    for target in re.findall(r"\]\(([^)\s]+)\)", _text(page)):
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings as GitHub and the site make them, and those that it names itself."""
    text = _text(page)
    titles = re.findall(r"(?m)^#+ (.+)$", text)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles} | {
        *re.findall(r"(?m)^\(([\w-]+)\)=$", text)
    }


def broken(pages: Iterable[Path], root: Path) -> list[str]:
    """Links that lead nowhere, where `root` is the machine's."""
    found = []
    for page in pages:
        for target in links(page):
            path, _, anchor = target.partition("#")
            at = Path(os.path.normpath(page.parent / path)) if path else page
            if at.is_symlink() and at.readlink().is_absolute():
                at = root / at.readlink().relative_to("/")
            if not at.exists() or (anchor and anchor not in anchors(at)):
                found.append(f"{page}: {target}")
    return found


def _text(page: Path) -> str:
    return re.sub(r"(?ms)^```.*?^```", "", page.read_text("utf-8"))
