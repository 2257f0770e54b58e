"""costs: the tokens and money of model calls."""

import click

from cli.options.global_options import Invocation, json_option, pass_invocation
from cli.options.time_type import Timestamp
from daemon.contract.costs import CostsResponse
from daemon.contract.http.routes import Route


@click.command()
@click.option("--since", type=Timestamp(), metavar="TIME", help="Only from the UTC day of this time on.")
@json_option
@pass_invocation
def costs(invocation: Invocation, since: str | None) -> None:
    """Show the calls, tokens and money that the model has taken, by UTC day, source and purpose.

    The source is that of the documents whose passages were extracted. Money is what [llm] price_per_million was at each call.
    """
    from cli.client.typed_answers import parse_answer
    from cli.render.costs import cost_lines

    with invocation.client() as client:
        answer = client.call("GET", Route.COSTS, params={} if since is None else {"since": since})
    invocation.emit(answer, lambda: cost_lines(parse_answer(CostsResponse, answer).costs))
