"""Building blocks of printed lines. No document text is interpreted as markup, because all text goes through `Text`."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from rich.cells import cell_len
from rich.text import Text

from cli.terminal_text import one_line

if TYPE_CHECKING:
    from rich.console import Console

DIM = "dim"
HEADING = "bold"
STATE_STYLES = {
    **dict.fromkeys(("ready", "indexed", "ok", "following", "watching", "polling"), "green"),
    **dict.fromkeys(("pending", "starting", "joining", "scanning"), "cyan"),
    **dict.fromkeys(("stopping", "skipped", "warn", "paused"), "yellow"),
    **dict.fromkeys(("failed", "fail", "error", "missing", "unreachable", "denied", "stopped"), "red"),
    "removed": DIM,
}
"""The colours of states of hippod, sources, documents and checks."""


def text(*parts: str | tuple[str, str]) -> Text:
    """Joins pieces (text, or text and style) to one line without control characters; spaces at the ends of a piece are kept."""
    line = Text()
    for part in parts:
        piece, style = (part, "") if isinstance(part, str) else part
        bare = piece.strip(" ")
        before, _, after = piece.partition(bare) if bare else (piece, "", "")
        line.append(f"{before}{one_line(bare)}{after}", style)
    return line


def state(word: str) -> tuple[str, str]:
    return word, STATE_STYLES.get(word, "")


def wrapped(line: Text, columns: int) -> list[Text]:
    """Returns at least one line of at most `columns`, broken between words if possible."""
    no_console = cast("Console", None)  # needed only to justify lines, and slow to load
    return list(line.wrap(no_console, columns)) or [line]


def align(
    rows: Sequence[Sequence[Text]], right: Iterable[int] = (), indent: int = 0, width: int | None = None
) -> list[Text]:
    """Returns rows as lines with aligned columns.

    The last column is wrapped to lines of `width` columns; None: it is not wrapped.
    """
    if not rows:
        return []
    widths = [max(cell_len(row[at].plain) for row in rows) for at in range(len(rows[0]))]
    to_right = set(right)
    lines = []
    for row in rows:
        line = Text(" " * indent)
        for at, cell in enumerate(row):
            gap = " " * (widths[at] - cell_len(cell.plain))
            last = at == len(row) - 1
            line.append(gap if at in to_right else "")
            line.append_text(cell)
            line.append("" if last else ("" if at in to_right else gap) + "  ")
        line.rstrip()
        lines += [line] if width is None else hanging(line, indent + sum(widths[:-1]) + 2 * len(widths[:-1]), width)
    return lines


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str | Text]], right: Iterable[int] = (), indent: int = 0
) -> list[Text]:
    """Returns aligned rows below their headings."""
    cells = [[each if isinstance(each, Text) else text(each) for each in row] for row in rows]
    return align([[text((head, HEADING)) for head in heads], *cells], right, indent)


def indent(body: Text, by: int, width: int) -> list[Text]:
    """Returns `body` wrapped to `width` columns, with every line indented by `by`."""
    lines = []
    for line in wrapped(body, max(20, width - by)):
        line.rstrip()
        lines.append(Text(" " * by).append_text(line))
    return lines


def hanging(head: Text, by: int, width: int) -> list[Text]:
    """Returns `head` wrapped to `width` columns, with the lines after the first indented by `by`."""
    first, *rest = wrapped(head, max(20, width))
    if not rest:
        return [head]
    first.rstrip()
    left = head[len(first.plain) :]
    start = len(left.plain) - len(left.plain.lstrip())
    return [first, *indent(left[start:], by, width)]


def triple(subject: str, predicate: str, object_: str) -> list[str | tuple[str, str]]:
    """Returns the pieces of "subject · predicate · object"."""
    return [subject, (" · ", DIM), (predicate, "italic"), (" · ", DIM), object_]
