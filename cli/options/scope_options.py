"""`--in`, `--source`, `--label`, `--where`, `--since` and `--until`: the documents that a command applies to."""

import os
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from cli.document_names import SCHEME, as_uri, request_json
from cli.options.global_options import Invocation, options
from cli.options.time_type import Timestamp

Command = TypeVar("Command", bound=Callable[..., Any])

FIELDS = {"in_": "in", "source": "source", "label": "labels", "where": "where", "since": "since", "until": "until"}
"""Key in a scope's JSON for each option."""


def scope_options(command: Command) -> Command:
    """Adds the parameter `scope`, the JSON of a scope, or None if no option is given."""

    @wraps(command)
    def callback(invocation: Invocation, **chosen: Any) -> Any:
        scope = {key: chosen.pop(option) for option, key in FIELDS.items()}
        if scope["source"] == "":
            raise click.BadParameter("must not be empty", param_hint="--source")
        since, until = scope["since"], scope["until"]
        if since and until and datetime.fromisoformat(since) > datetime.fromisoformat(until):
            raise click.UsageError("--since is later than --until: no document is of that time.")
        return command(invocation, scope={key: value for key, value in scope.items() if value} or None, **chosen)

    return cast("Command", _options(callback))


def scope_parameter(scope: dict[str, Any] | None) -> dict[str, str]:
    """Returns a scope as parameters of a query string."""
    return {} if scope is None else {"scope": request_json(scope)}


def _prefixes(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> list[str]:
    """Returns the values with paths made absolute; URIs stay unchanged."""
    if "" in given:  # as a path, it would be the current folder
        raise click.BadParameter("must not be empty")
    return [as_uri(text) if SCHEME.match(text) else _absolute(text) for text in given]


def _absolute(text: str) -> str:
    """Returns the absolute path, or its URI if it is not valid UTF-8 and JSON cannot contain it.

    A folder's URI ends with "/".
    """
    path = os.path.abspath(Path(text).expanduser())  # noqa: PTH100
    try:
        path.encode()
    except UnicodeEncodeError:
        uri = Path(path).as_uri()
        return f"{uri}/" if os.path.isdir(path) else uri  # noqa: PTH112 - Path.is_dir raises without access
    return path


def _conditions(context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE", context, parameter)
        if found.setdefault(key, value) != value:
            raise click.BadParameter(f"{key!r} cannot be both {found[key]!r} and {value!r}", context, parameter)
    return found


_options = options(
    click.option(
        "--in",
        "in_",
        multiple=True,
        metavar="PREFIX",
        callback=_prefixes,
        help="Only documents below this folder, in this file, or with a URI that begins with PREFIX. Repeatable.",
    ),
    click.option("--source", metavar="NAME", help="Only documents of this source, as `status` names it."),
    click.option(
        "--label", multiple=True, metavar="L", help="Only documents with this label. Repeatable: any of them."
    ),
    click.option(
        "--where",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_conditions,
        help="Only documents with this value in their metadata. Repeatable: all of them.",
    ),
    click.option(
        "--since",
        type=Timestamp(),
        metavar="TIME",
        help="Only documents published (otherwise changed) at or after TIME.",
    ),
    click.option(
        "--until",
        type=Timestamp(),
        metavar="TIME",
        help="Only documents published (otherwise changed) at or before TIME.",
    ),
)
