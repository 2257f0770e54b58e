"""sessions: the sessions that `ask --deep --session` continues."""

import re

import click

from cli.options.global_options import Invocation, json_option, pass_invocation
from cli.output import print_note, width
from cli.terminal_text import count
from daemon.contract.answering.sessions import SessionList
from daemon.contract.http.routes import Route
from daemon.contract.limits import SESSION_PATTERN


@click.group(invoke_without_command=True)
@json_option
@pass_invocation
@click.pass_context
def sessions(context: click.Context, invocation: Invocation) -> None:
    """List the sessions of `ask --deep --session NAME` with their questions and points; `rm` removes sessions.

    hippod deletes a session that was not used for [retrieval] keep_sessions.
    """
    if context.invoked_subcommand is None:
        _list(invocation)


@sessions.command(name="list")
@json_option
@pass_invocation
def list_sessions(invocation: Invocation) -> None:
    """List sessions, like `sessions` alone."""
    _list(invocation)


def _list(invocation: Invocation) -> None:
    from cli.client.typed_answers import parse_answer
    from cli.render.sessions import session_lines

    answer = invocation.call("GET", Route.SESSIONS)
    invocation.emit(answer, lambda: session_lines(parse_answer(SessionList, answer).sessions, width()))


def _names(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not re.fullmatch(SESSION_PATTERN, name):
            raise click.BadParameter(f"{name!r} is not a session name", context, parameter)
    return names


@sessions.command(name="rm")
@click.argument("names", nargs=-1, required=True, metavar="NAME…", callback=_names)
@json_option
@pass_invocation
def remove_sessions(invocation: Invocation, names: tuple[str, ...]) -> None:
    """Remove sessions with their points. An unknown name is not an error."""
    answer = invocation.call("DELETE", Route.SESSIONS, {"names": list(names)})
    for name in answer.get("missing", []):
        print_note(f"session {name} does not exist")
    from cli.render.lines import text

    invocation.emit(answer, lambda: [text(f"{count(int(answer.get('removed', 0)), 'session')} removed")])
