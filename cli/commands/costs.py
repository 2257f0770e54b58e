"""costs: the tokens and money of model calls."""

from collections.abc import Sequence

import click
from rich.text import Text

from cli.client.typed_answers import parse_answer
from cli.options.global_options import Invocation, command
from cli.options.time_type import Timestamp
from cli.render.lines import table, text
from daemon.contract.costs import CostEntry, CostsResponse
from daemon.contract.http.routes import Route

HEADS = ("day", "source", "purpose", "calls", "prompt tokens", "completion tokens", "money")


@command("costs")
@click.option("--since", type=Timestamp(), metavar="TIME", help="Only from the UTC day of this time on.")
def costs(invocation: Invocation, since: str | None) -> None:
    """The source is the source of the documents whose passages were extracted. Money is computed with [llm] price_per_million
    at each call."""
    answer = invocation.call("GET", Route.COSTS, params={} if since is None else {"since": since})
    invocation.emit(answer, lambda: _cost_lines(parse_answer(CostsResponse, answer).costs))


def _cost_lines(costs: Sequence[CostEntry]) -> list[Text]:
    if not costs:
        return [text("The model has answered no calls.")]
    rows: list[tuple[str | int, ...]] = [
        (str(each.day), each.source or "-", each.purpose, each.calls, each.tokens.prompt, each.tokens.completion)
        for each in costs
    ]
    sums = [sum(int(row[column]) for row in rows) for column in (3, 4, 5)]
    money = [each.money for each in costs]
    lines = [[*map(_cell, row), f"{amount:,.4f}"] for row, amount in zip(rows, money, strict=True)]
    return table(HEADS, [*lines, ["total", "", "", *map(_cell, sums), f"{sum(money):,.4f}"]], right=range(3, 7))


def _cell(value: str | int) -> str:
    return value if isinstance(value, str) else f"{value:,}"
