"""`costs` on a terminal: a row for each day, source and purpose, and the sum."""

from collections.abc import Sequence

from cli.render.lines import table, text
from cli.render.styled_text import Text
from daemon.contract.costs import CostEntry

HEADS = ("day", "source", "purpose", "calls", "prompt tokens", "completion tokens", "money")


def cost_lines(costs: Sequence[CostEntry]) -> list[Text]:
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
