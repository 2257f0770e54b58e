"""A page of the reference as Markdown: what `systemd/package/manual.py` writes for `man`, for the site."""

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`[^`]+`)")
_SIGNS = re.compile(r"([\\*_<>\[\]{}|#$~])")


class MarkdownPage:
    """One page, line by line. Text is plain but for `code` in backticks; empty lines part paragraphs."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def title(self, name: str, purpose: str) -> None:
        self._lines += [f"# `{name}`", "", escaped(purpose[0].upper() + purpose[1:] + "."), ""]

    def section(self, title: str) -> None:
        """A heading: words of roff's capitals become words, a table of the configuration is code."""
        self._lines += [f"## `{title}`" if title.startswith("[") else f"## {title.capitalize()}", ""]

    def command(self, name: str, usage: str) -> None:
        self._lines += [f"### `{name}`", "", "```text", usage, "```", ""]

    def text(self, text: str) -> None:
        """Paragraphs; what is indented by four blanks or more stays as it is."""
        for paragraph in re.split(r"\n[ \t]*\n", text.strip("\n")):
            if paragraph and all(line.startswith("    ") for line in paragraph.splitlines()):
                self._lines += [paragraph, ""]
            elif paragraph.strip():
                self._lines += [escaped(" ".join(paragraph.split())), ""]

    def entries(self, terms: Sequence[str], text: str) -> None:
        """One or more terms with what is said of them together, as a definition list."""
        paragraphs = [" ".join(each.split()) for each in re.split(r"\n[ \t]*\n", text.strip()) if each.strip()]
        self._lines.append(", ".join(code(term) for term in terms))
        for number, paragraph in enumerate(paragraphs or ["\N{NO-BREAK SPACE}"]):
            self._lines += [("  " if number else ": ") + escaped(paragraph), ""]

    def see(self, _pages: Iterable[str]) -> None:
        """The other pages stand in the site's navigation."""

    def __str__(self) -> str:
        return "\n".join(self._lines).rstrip() + "\n"


def escaped(text: str) -> str:
    """Plain text that Markdown takes for nothing else; `code` in backticks stays code."""
    return "".join(part if part.startswith("`") else _SIGNS.sub(r"\\\1", part) for part in _CODE.split(text))


def code(text: str) -> str:
    """Text as code, whatever is in it."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def cell(text: str) -> str:
    """What may stand in a cell of a table: one line, in which a bar is no border, even inside of code."""
    return " ".join(text.split()).replace("\\|", "|").replace("|", "\\|")
