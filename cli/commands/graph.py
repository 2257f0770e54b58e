"""graph: the neighbourhood of a question, written to a file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.commands.query import question_options
from cli.errors import CommandError
from cli.files import atomic_file
from cli.options.global_options import Invocation, command
from cli.options.retrieval_options import mode_option, request_fields
from cli.options.scope_options import scope_options
from cli.options.time_type import as_of_option
from cli.output import progress
from cli.terminal_text import count
from daemon.contract.http.routes import NODES_MAX, Route

if TYPE_CHECKING:
    from daemon.contract.graph import GraphResponse

DEFAULT_NODES = 200
OUTPUT_FILE = click.Path(path_type=Path, dir_okay=False)


@command("graph")
@question_options
@click.option("--html", "page", type=OUTPUT_FILE, metavar="FILE", help="A page: one file that works offline.")
@click.option("--png", "picture", type=OUTPUT_FILE, metavar="FILE", help="A picture, 1600 x 1200.")
@click.option("--graphml", "exchanged", type=OUTPUT_FILE, metavar="FILE", help="For igraph, networkx or Gephi.")
@click.option(
    "--nodes",
    type=click.IntRange(1, NODES_MAX),
    default=DEFAULT_NODES,
    show_default=True,
    help="Maximum number of nodes.",
)
@mode_option
@as_of_option
@scope_options
def graph(
    invocation: Invocation, /, page: Path | None, picture: Path | None, exchanged: Path | None, **chosen: Any
) -> None:
    """The nodes have the highest PageRank, which starts at the phrases linked to the question. The strongest path to each
    passage is included. Give one or more files, or --json to print the graph."""
    files = [path for path in (page, picture, exchanged) if path is not None]
    if not files and not invocation.json:
        raise click.UsageError(
            "Name a file: --html FILE, --png FILE or --graphml FILE; or print the graph with --json."
        )
    if files:
        from cli.graph.layout import load_igraph

        load_igraph()  # before the question is asked
    answer = invocation.call("POST", Route.GRAPH, request_fields(chosen, text="query"))
    from cli.client.typed_answers import parse_answer
    from cli.render.lines import text as line
    from daemon.contract.graph import GraphResponse

    if not files:
        invocation.emit(answer, list)
        return
    neighbourhood = parse_answer(GraphResponse, answer)
    if not neighbourhood.nodes:
        raise CommandError("the memory contains nothing that the question leads to.", hint=neighbourhood.note)
    with progress("drawing"):
        written = _write_file(neighbourhood, page, picture, exchanged)
    summary = {
        "nodes": len(neighbourhood.nodes),
        "edges": len(neighbourhood.edges),
        "commit": neighbourhood.commit,
        "files": written,
    }
    sentence = (
        f"{count(len(neighbourhood.nodes), 'node')}, {count(len(neighbourhood.edges), 'edge')}, in {', '.join(written)}"
    )
    invocation.emit(summary, lambda: [line(sentence)], wrap=False)


def _write_file(
    neighbourhood: "GraphResponse", page: Path | None, picture: Path | None, exchanged: Path | None
) -> list[str]:
    """Writes each requested file, completely or not at all, and returns their paths."""
    from cli.graph.layout import as_igraph, graphml, node_positions

    whole = as_igraph(neighbourhood)
    made: list[tuple[Path, bytes]] = []
    if exchanged is not None:
        made.append((exchanged, graphml(whole)))
    positions = node_positions(whole) if page is not None or picture is not None else []
    if picture is not None:
        from cli.graph.png import png

        made.append((picture, png(neighbourhood, positions)))
    if page is not None:
        from cli.graph.page import html

        made.append((page, html(neighbourhood, positions).encode()))
    for path, content in made:
        with atomic_file(path) as stream:
            stream.write(content)
    return [os.fsencode(path.absolute()).decode("utf-8", "backslashreplace") for path, _ in made]
