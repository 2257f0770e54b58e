"""Text as a manual page, with the few macros of man(7) that hippod's pages use.

click-man and argparse-manpage write one page for each subcommand and none for a configuration. Their templates would be longer
than this module.
"""

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"`([^`]+)`")


class Page:
    """One page, line by line. Text is plain: `code` in backticks is set in bold, empty lines separate paragraphs."""

    def __init__(self, name: str, section: int, version: str, manual: str) -> None:
        self._lines = [f'.TH {name.upper()} {section} "" "hippod {version}" "{manual}"', ".nh", ".ad l"]

    def title(self, name: str, purpose: str) -> None:
        self.section("NAME")
        self.text(f"{name} - {purpose}")

    def section(self, title: str) -> None:
        self._lines.append(f'.SH "{_argument(title)}"')

    def command(self, _name: str, usage: str) -> None:
        self._lines.append(f'.SS "{_argument(usage)}"')

    def text(self, text: str) -> None:
        """Adds paragraphs; lines indented by four or more blanks are kept unchanged."""
        for paragraph in re.split(r"\n[ \t]*\n", text.strip("\n")):
            if not paragraph.strip():
                continue
            if all(line.startswith("    ") for line in paragraph.splitlines()):
                self._lines += [".PP", ".RS 4", ".nf", *map(line, paragraph.splitlines()), ".fi", ".RE"]
            else:
                self._lines += [".PP", line(" ".join(paragraph.split()))]

    def entries(self, terms: Sequence[str], text: str) -> None:
        """Adds one or more terms with their common description."""
        self._lines += [".TP", bold(terms[0])]
        for term in terms[1:]:
            self._lines += [".TQ", bold(term)]
        paragraphs = [" ".join(each.split()) for each in re.split(r"\n[ \t]*\n", text.strip()) if each.strip()]
        for number, paragraph in enumerate(paragraphs):
            self._lines += ([".IP"] if number else []) + [line(paragraph)]

    def see(self, pages: Iterable[str]) -> None:
        self.section("SEE ALSO")
        self._lines.append(line(", ".join(f"`{page}`" for page in pages)))

    def __str__(self) -> str:
        return "\n".join(self._lines) + "\n"


def line(text: str) -> str:
    """Escapes one line of text so that no formatter takes it for a request."""
    set_ = _CODE.sub(lambda match: f"\0{match[1]}\1", text)
    escaped = _escaped(set_).replace("\0", r"\fB").replace("\1", r"\fR")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


def bold(text: str) -> str:
    return rf"\fB{_escaped(text)}\fR"


def plain(page: str) -> str:
    """Returns a page's words without macros, for tests and searches."""
    text = re.sub(r"\\f[BR]|\\&", "", page)
    return (
        text.replace(r"\-", "-")
        .replace(r"\(ti", "~")
        .replace(r"\(ha", "^")
        .replace(r"\(dq", '"')
        .replace(r"\(aq", "'")
        .replace(r"\(ga", "`")
        .replace(r"\e", "\\")
    )


def _escaped(text: str) -> str:
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return (
        text.replace("'", r"\(aq")
        .replace("`", r"\(ga")
        .replace('"', r"\(dq")
        .replace("~", r"\(ti")
        .replace("^", r"\(ha")
    )


def _argument(text: str) -> str:
    return _escaped(text)
