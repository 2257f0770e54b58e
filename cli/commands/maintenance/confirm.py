"""confirm: remove the documents that a folder keeps until the user confirms their removal."""

import click

from cli.options.global_options import Invocation, json_option, pass_invocation
from cli.terminal_text import count, one_line
from daemon.contract.http.routes import Route


@click.command()
@click.argument("source")
@json_option
@pass_invocation
def confirm(invocation: Invocation, source: str) -> None:
    """Remove the documents that hippod keeps for the folder SOURCE until you confirm their removal.

    SOURCE is the folder's name, as `status` shows it. hippod keeps documents that a scan missed, if they are more than half
    of the folder's, because the drive may be mounted empty or the path may be wrong. After an upgrade it keeps documents
    that a new default exclusion leaves out. `status` and `doctor` show their number.
    """
    answer = invocation.call("POST", Route.CONFIRM, {"source": source})
    from cli.render.lines import text

    invocation.emit(
        answer, lambda: [text(f"{count(answer['documents'], 'document')} of {one_line(source)} are forgotten.")]
    )
