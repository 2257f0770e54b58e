"""Output to stdout and stderr: one JSON document, or text for people, with colours only on a terminal that shows them."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Protocol

from cli.terminal_text import one_line, terminal_safe

if TYPE_CHECKING:
    from rich.text import Text

WRITE_BYTES = 65_536
"""Bytes per write. With PYTHONUNBUFFERED, Python does not report a longer write that a closed pipe cut short."""
PLAIN_WIDTH = 100
"""Width of text that is written to a pipe or file."""
DUMB_WIDTH = 80
"""Width of a terminal that does not report its own."""


def print_json(document: object, one_line: bool = False) -> None:
    """Prints one JSON document in ASCII, so that its content cannot control a terminal and any locale can print it."""
    indent = 2 if sys.stdout.isatty() and not one_line else None
    text = json.dumps(document, indent=indent, ensure_ascii=True) + "\n"
    for start in range(0, len(text), WRITE_BYTES):
        sys.stdout.write(text[start : start + WRITE_BYTES])
    sys.stdout.flush()


def print_note(text: str) -> None:
    """Prints a line for people on stderr."""
    sys.stderr.write(f"hippoctl: {one_line(text)}\n")
    sys.stderr.flush()


def is_coloured(stream: IO[str]) -> bool:
    """Whether `stream` is a terminal that shows colours and the user has not disabled them."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", "unknown")


def terminal_columns(stream: IO[str]) -> int:
    """Returns the width of `stream`. $COLUMNS overrides the terminal's own width; a pipe or file has `PLAIN_WIDTH`."""
    if not stream.isatty():
        return PLAIN_WIDTH
    if os.environ.get("COLUMNS", "").isdecimal():
        return int(os.environ["COLUMNS"]) or DUMB_WIDTH
    try:
        return os.get_terminal_size(stream.fileno()).columns or DUMB_WIDTH
    except OSError:
        return DUMB_WIDTH


def width() -> int:
    """Returns the number of columns for text."""
    return max(40, min(terminal_columns(sys.stdout), 120))


def print_lines(lines: "Iterable[Text]", *, wrap: bool = True) -> None:
    """Prints lines of text on stdout, wrapped between words or, for tables, not wrapped."""
    from cli.render.lines import wrapped

    columns, shown = terminal_columns(sys.stdout), _with_colours() if is_coloured(sys.stdout) else _without_colours
    for line in lines:
        for part in wrapped(line, columns) if wrap else [line]:
            sys.stdout.write(f"{shown(part)}\n")
    sys.stdout.flush()


def _without_colours(line: "Text") -> str:
    return terminal_safe(line.plain)


def _with_colours() -> "Callable[[Text], str]":
    from rich.color import ColorSystem
    from rich.console import Console

    console = Console(file=sys.stdout, force_terminal=True, color_system="standard", legacy_windows=False)

    def shown(line: "Text") -> str:
        pieces = ((terminal_safe(piece.text), piece.style) for piece in line.render(console))
        return "".join(
            style.render(text, color_system=ColorSystem.STANDARD) if style else text for text, style in pieces
        )

    return shown


class ShowProgress(Protocol):
    """Shows the progress of work that is counted elsewhere: `done` of `total` (None: unknown)."""

    def __call__(self, text: str, done: float = 0, total: float | None = None, /) -> None: ...


@contextmanager
def progress(label: str) -> Iterator[ShowProgress]:
    """Shows a progress bar on stderr during the `with` block, or a spinner while the total is unknown. Yields a function that
    updates it. Shows nothing if stderr is not a terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda _text, _done=0, _total=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    coloured = is_coloured(sys.stderr)

    class Pipe(Console):
        """Lets `main` handle a closed pipe; rich would exit with 1."""

        def on_broken_pipe(self) -> None:
            raise

    console = Pipe(
        file=sys.stderr,
        force_terminal=coloured,
        color_system="auto" if coloured else None,
        no_color=not coloured,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    columns = SpinnerColumn(), BarColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(one_line(label), total=None)

        def show(text: str, done: float = 0, total: float | None = None) -> None:
            bars.update(task, description=one_line(text), completed=done, total=total)

        yield show
