"""Types of options with times and durations."""

import re
from datetime import datetime
from typing import Any

import click

from cli.terminal_text import duration
from daemon.contract.durations import ALLOWED, parse_duration

_COMMIT = re.compile(r"0*[1-9][0-9]{0,17}")


class Timestamp(click.ParamType["str"]):
    """A date, or a date and time. Without an offset, it is this machine's local time."""

    name = "time"
    known = "2026-03-01, 2026-03-01T12:00 or 2026-03-01T12:00:00Z"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return datetime.fromisoformat(value).astimezone().isoformat()
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a time; write {self.known}", param, ctx)


class Moment(click.ParamType["str | int"]):
    """A time, or the number of a commit."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        # Digits alone are a commit's number, never a date: dates need dashes.
        if _COMMIT.fullmatch(str(value)):
            return int(value)
        try:
            return Timestamp().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(
                f"{value!r} is not a time; write {Timestamp.known.replace(' or ', ', ')} or a commit's number",
                param,
                ctx,
            )


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
        # The comparison also refuses "nan".
        if not 0 <= seconds <= self._longest_s or (seconds == 0 and not self._zero):
            self.fail(
                f"{value!r} is not between {0 if self._zero else 'more than 0'} and {duration(self._longest_s)}",
                param,
                ctx,
            )
        return seconds


as_of_option = click.option(
    "--as-of", type=Moment(), metavar="TIME|COMMIT", help="Query an earlier state of the memory."
)
