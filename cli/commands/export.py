"""export: the whole memory as JSON lines, or its graph as GraphML."""

import os
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlencode

import click

from cli.errors import CommandError
from cli.files import atomic_file
from cli.options.global_options import Invocation, command
from cli.options.scope_options import scope_options, scope_parameter
from cli.output import progress
from cli.terminal_text import count, json_safe, size, xml_safe
from daemon.contract.choices import ExportFormat
from daemon.contract.http.routes import Route

ARCHIVE_ENDINGS = (".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".tar", ".7z", ".rar")
ESCAPES = {ExportFormat.JSONL: json_safe, ExportFormat.GRAPHML: xml_safe}
"""Functions that escape characters which act on a terminal. An export to a file or pipe stays unchanged."""


@command("export")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--format",
    "format_",
    type=click.Choice([format.value for format in ExportFormat]),
    help="Default: by FILE's ending: .graphml, .graphmlz or .graphml.gz (igraph), otherwise jsonl.",
)
@scope_options
def export(invocation: Invocation, file: Path, format_: str | None, scope: dict[str, Any] | None) -> None:
    """igraph, networkx and Gephi read `graphml`; `igraph` is the same with gzip, for igraph.Graph.Read_GraphMLz. The order
    depends on content alone. FILE is written completely or not at all. Scope options limit the export. With `-`, standard
    output contains only the export, with or without --json. On a terminal, control characters are escaped.
    """
    format_of_file = ExportFormat(format_) if format_ else export_format_of(file)
    if format_of_file is None:
        named = "FILE.jsonl, FILE.graphml or FILE.graphmlz"
        raise click.UsageError(
            f"{file}: no archive is written, so its ending would mislead; write {named}, or give --format."
        )
    chosen = {"format": format_of_file.value} | scope_parameter(scope)
    lines = written = 0
    to_stdout = invocation.stdout_taken = str(file) == "-"
    with progress("exporting") as shown:
        stream = invocation.client().stream(f"{Route.EXPORT}?{urlencode(chosen)}", accept=format_of_file.media_type)
        with stream as pieces, _stdout() if to_stdout else atomic_file(file) as target:
            write = terminal_write(target, format_of_file) if target.isatty() else target.write
            for chunk in pieces:
                write(chunk)
                lines += chunk.count(b"\n")
                written += len(chunk)
                shown(_export_format(format_of_file, lines, written))
    if to_stdout:
        return
    from cli.render.lines import text

    answer = {
        "file": os.fsencode(file.absolute()).decode("utf-8", "backslashreplace"),
        "format": format_of_file.value,
        "lines": None if format_of_file is ExportFormat.IGRAPH else lines,
        "bytes": written,
    }
    invocation.emit(answer, lambda: [text(f"{_export_format(format_of_file, lines, written)}, in {file}")], wrap=False)


def terminal_write(stream: IO[bytes], format: ExportFormat) -> Callable[[bytes], object]:
    """Returns a function that writes pieces of UTF-8 to a terminal and escapes control characters.

    Raises CommandError for a format that is not text.
    """
    if (escape := ESCAPES.get(format)) is None:
        raise CommandError(f"{format.value} is not text for a terminal: give FILE, or pipe the output to a program.")
    decoder = getincrementaldecoder("utf-8")("replace")
    return lambda piece: stream.write(escape(decoder.decode(piece)).encode())


def export_format_of(file: Path) -> ExportFormat | None:
    """Returns the format for a file's name; None if the name ends like an archive that cannot be written."""
    name = file.name.lower()
    if name.endswith((".graphmlz", ".graphml.gz")):
        return ExportFormat.IGRAPH
    if name.endswith(ARCHIVE_ENDINGS):
        return None
    return ExportFormat.GRAPHML if name.endswith(".graphml") else ExportFormat.JSONL


def _export_format(format: ExportFormat, lines: int, written: int) -> str:
    return size(written) if format is ExportFormat.IGRAPH else f"{count(lines, 'line')}, {size(written)}"


@contextmanager
def _stdout() -> Iterator[IO[bytes]]:
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()
