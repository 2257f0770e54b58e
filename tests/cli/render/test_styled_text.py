"""Lines are broken as rich breaks them, and styles reach the terminal."""

import pytest
from rich.console import Console
from rich.text import Text as RichText

from cli.render.styled_text import Text

TEXTS = [
    "",
    "one",
    "Emil Strand built the rain gauge in 1974, and nobody has moved it since.",
    "averylongwordthatfitsnowhereatall and more",
    "short averylongwordthatfitsnowhereatall",
    "日本語の文章は幅が二倍です。 and then Latin words follow it",
    "two  spaces   and     many more spaces       here",
    "  begins with spaces and goes on",
    "ends with spaces      ",
    "lines\nof\n\na poem, of which one is longer than the others",
]


@pytest.mark.parametrize("columns", [5, 10, 21, 40, 100])
@pytest.mark.parametrize("plain", TEXTS)
def test_lines_are_broken_between_words(plain: str, columns: int) -> None:
    theirs = [line.plain.rstrip() for line in RichText(plain).wrap(Console(width=columns), columns)]
    assert [line.plain.rstrip() for line in Text(plain).wrap(columns)] == theirs


def test_nothing_is_lost_and_each_piece_keeps_its_style() -> None:
    line = Text("rain ", "bold").append("gauge of ").append("Emil Strand", "dim")
    line.stylize("yellow", 0, 10)
    first, second, third = line.wrap(12)
    assert [part.plain.rstrip() for part in (first, second, third)] == ["rain gauge", "of Emil", "Strand"]
    assert first.ansi().startswith("\x1b[1;33mrain \x1b[0m\x1b[33mgauge\x1b[0m")
    assert "".join(part.plain for part in line.wrap(12)) == line.plain
    assert Text("no style").ansi() == "no style"


def test_a_piece_can_be_cut_out() -> None:
    line = Text("abc", "red").append("def")
    assert (line[2:5].plain, line[:3].ansi(), line[3:].ansi()) == ("cde", "\x1b[31mabc\x1b[0m", "def")
    spaced = Text("abc  ", "red")
    spaced.rstrip()
    assert spaced.plain == "abc"
