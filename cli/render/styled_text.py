"""A line of text in pieces, each with a style.

rich's console takes as long to load as a query takes, so only its table of character widths is used.
"""

import re
from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from cli.terminal_text import terminal_safe

_ATTRIBUTES = {"bold": "1", "dim": "2", "italic": "3"}
_COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36"}
"""Words of a style, and their terminal codes."""
_WORD = re.compile(r"\s*\S+\s*")
TAB_COLUMNS = 8


class Text:
    """Text that is never interpreted as markup, without characters that act on a terminal.

    Columns are those of a terminal: a Chinese character takes two.
    """

    def __init__(self, plain: str = "", style: str = "") -> None:
        self._pieces: list[tuple[str, str]] = []
        self.append(plain, style)

    @property
    def plain(self) -> str:
        return "".join(piece for piece, _ in self._pieces)

    def append(self, plain: str, style: str = "") -> "Text":
        if plain:
            self._pieces.append((terminal_safe(plain), style))
        return self

    def append_text(self, other: "Text") -> "Text":
        self._pieces += other._pieces
        return self

    def stylize(self, style: str, start: int = 0, end: int | None = None) -> None:
        """Adds `style` to the characters from `start` up to, but not including, `end`."""
        end = len(self.plain) if end is None else end
        inside = [(piece, f"{own} {style}".strip()) for piece, own in self[start:end]._pieces]
        self._pieces = [*self[:start]._pieces, *inside, *self[end:]._pieces]

    def rstrip(self) -> None:
        self._pieces = self[: len(self.plain.rstrip())]._pieces

    def __getitem__(self, span: slice) -> "Text":
        start, end, _ = span.indices(len(self.plain))
        cut, at = Text(), 0
        for piece, style in self._pieces:
            cut.append(piece[max(0, start - at) : max(0, end - at)], style)
            at += len(piece)
        return cut

    def wrap(self, columns: int) -> list["Text"]:
        """Returns at least one line of at most `columns`, broken between words if possible."""
        lines = []
        for start, end in _line_spans(self.plain):
            line = self[start:end]._with_spaces_for_tabs()
            ends = [*_breaks(line.plain, columns), len(line.plain)]
            for begin, stop in zip([0, *ends], ends, strict=False):
                part = line[begin:stop]
                if cell_len(part.plain) > columns:
                    part.rstrip()
                lines.append(part)
        return lines

    def ansi(self) -> str:
        """Returns the text with terminal codes for its styles."""
        return "".join(
            f"\x1b[{codes}m{piece}\x1b[0m" if (codes := _codes(style)) else piece for piece, style in self._pieces
        )

    def _with_spaces_for_tabs(self) -> "Text":
        if "\t" not in self.plain:
            return self
        made, column = Text(), 0
        for piece, style in self._pieces:
            whole = (" " * column + piece).expandtabs(TAB_COLUMNS)[column:]
            made.append(whole, style)
            column = (column + len(whole)) % TAB_COLUMNS
        return made


def _codes(style: str) -> str:
    words = style.split()
    attributes = [code for word, code in _ATTRIBUTES.items() if word in words]
    return ";".join([*attributes, *[_COLOURS[word] for word in words if word in _COLOURS][-1:]])


def _line_spans(plain: str) -> Iterator[tuple[int, int]]:
    at = 0
    for line in plain.split("\n"):
        yield at, at + len(line)
        at += len(line) + 1


def _breaks(plain: str, columns: int) -> Sequence[int]:
    """Returns the starts of all lines except the first. A word that is wider than a line is split."""
    starts: list[int] = []
    used = 0
    for word in _WORD.finditer(plain):
        room = columns - used
        width = cell_len(word[0].rstrip())
        if width <= room:
            used += cell_len(word[0])
            continue
        if used:
            starts.append(word.start())
        used = cell_len(word[0])
        if width > columns:
            used = 0
            for at, character in enumerate(word[0], word.start()):
                if used + (wide := cell_len(character)) > columns:
                    starts.append(at)
                    used = 0
                used += wide
    return starts
