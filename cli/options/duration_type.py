"""The type of options with durations."""

from typing import Any

import click

from cli.terminal_text import duration
from daemon.contract.durations import ALLOWED, parse_duration


class Duration(click.ParamType["float"]):
    """A duration such as 60s, 90m or 1h30m; a number without a unit is seconds."""

    name = "duration"

    def __init__(self, longest_s: float, *, zero: bool = True) -> None:
        """`longest_s` is the maximum. `zero` is whether 0 is allowed."""
        self._longest_s = longest_s
        self._zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float(value)
        except ValueError:
            try:
                seconds = parse_duration(str(value))
            except ValueError:
                self.fail(f"{value!r} is not {ALLOWED}", param, ctx)
        # "nan" is not between any two numbers.
        if not 0 <= seconds <= self._longest_s or (seconds == 0 and not self._zero):
            self.fail(
                f"{value!r} is not between {0 if self._zero else 'more than 0'} and {duration(self._longest_s)}",
                param,
                ctx,
            )
        return seconds
