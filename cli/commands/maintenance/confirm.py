"""confirm: saying that what a source did not find any more is gone."""

import click

from cli.options.global_options import Invocation, json_option, pass_invocation
from cli.terminal_text import count, one_line
from daemon.contract.http.routes import Route


@click.command()
@click.argument("source")
@json_option
@pass_invocation
def confirm(invocation: Invocation, source: str) -> None:
    """Remove the documents whose files a scan of the folder SOURCE did not find.

    SOURCE is the folder's name, as `status` shows it. If a scan misses more than half of a folder's documents, hippod keeps
    them until this command, because the drive may be mounted empty or the path may be wrong. `status` and `doctor` show the
    number of missing documents.
    """
    with invocation.client() as client:
        answer = client.call("POST", Route.CONFIRM, {"source": source})
    from cli.render.lines import text

    invocation.emit(
        answer, lambda: [text(f"{count(answer['documents'], 'document')} of {one_line(source)} are forgotten.")]
    )
