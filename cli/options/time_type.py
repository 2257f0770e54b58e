"""Types of options with times."""

from datetime import datetime
from typing import Any

import click


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
        # Digits only are a commit's number; a date would have to be written without dashes to be confused with it.
        if str(value).isascii() and str(value).isdigit() and int(value) > 0:
            return int(value)
        try:
            return Timestamp().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(
                f"{value!r} is not a time; write {Timestamp.known.replace(' or ', ', ')} or a commit's number",
                param,
                ctx,
            )


as_of_option = click.option("--as-of", type=Moment(), metavar="TIME|COMMIT", help="Ask an earlier state of the memory.")
