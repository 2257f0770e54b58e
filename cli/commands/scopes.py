"""scopes: the values that --source, --label and --in accept."""

import click

from cli.options.global_options import Invocation, json_option, pass_invocation
from daemon.contract.http.routes import Route


@click.command()
@json_option
@pass_invocation
def scopes(invocation: Invocation) -> None:
    """List the sources, labels and folders that a question can be limited to, with their document counts."""
    answer = invocation.call("GET", Route.SCOPES)
    from cli.client.typed_answers import parse_answer
    from cli.render.scopes import scope_lines
    from daemon.contract.scope import ScopeList

    invocation.emit(answer, lambda: scope_lines(parse_answer(ScopeList, answer)), wrap=False)
