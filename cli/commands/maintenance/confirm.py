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
    """Forget the documents that a folder did not find any more. SOURCE is its name, as `status` shows it.

    A scan that would forget more than half of a folder's documents at once keeps them: the drive may be mounted empty, or the
    path wrong. `status` and `doctor` say so.
    """
    with invocation.client() as client:
        answer = client.call("POST", Route.CONFIRM, {"source": source})
    from cli.render.lines import text

    invocation.emit(
        answer, lambda: [text(f"{count(answer['documents'], 'document')} of {one_line(source)} are forgotten.")]
    )
