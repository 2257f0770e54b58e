"""`--set KEY=VALUE`: settings of `[retrieval]` for one command."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def settings_option(command: Command) -> Command:
    """Gives the command `settings`, a mapping that goes into the request as it is."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_read,
        help="Use another setting of [retrieval], such as passage_weight=0.1 or passage_nodes=false. Repeatable.",
    )(command)


def _read(context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]) -> dict[str, Any]:
    from pydantic import ValidationError

    from daemon.contract import RetrievalOverrides

    given = {}
    for pair in pairs:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key or not value:
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE", context, parameter)
        if key not in RetrievalOverrides.model_fields:
            known = ", ".join(RetrievalOverrides.model_fields)
            raise click.BadParameter(f"{key!r} is no setting; there are {known}", context, parameter)
        given[key] = value
    try:
        # Text becomes numbers and truth values here, as the daemon takes them.
        return RetrievalOverrides.model_validate_strings(given).model_dump(exclude_none=True)
    except ValidationError as error:
        first = error.errors()[0]
        message = f"{first['loc'][0]}: {first['msg'][:1].lower()}{first['msg'][1:]}"
        raise click.BadParameter(message, context, parameter) from None
