"""sessions: what `ask --deep --session` goes on from."""

import re

import click

from cli.output import note, width
from cli.session import Session, json_option, pass_session
from cli.text import count
from daemon.contract import SESSION_PATTERN, Route, SessionList


@click.group(invoke_without_command=True)
@json_option
@pass_session
@click.pass_context
def sessions(context: click.Context, session: Session) -> None:
    """List the sessions of `ask --deep --session NAME`, with their questions and points; remove some with `rm`.

    A session goes by itself once nobody has asked in it for as long as [retrieval] keep_sessions says.
    """
    if context.invoked_subcommand is None:
        _list(session)


@sessions.command(name="list")
@json_option
@pass_session
def list_sessions(session: Session) -> None:
    """List them, as `sessions` alone does."""
    _list(session)


def _list(session: Session) -> None:
    from cli.client import read
    from cli.render.sessions import listed

    with session.client() as client:
        answer = client.call("GET", Route.SESSIONS)
    session.emit(answer, lambda: listed(read(SessionList, answer).sessions, width()))


def _names(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not re.fullmatch(SESSION_PATTERN, name):
            raise click.BadParameter(f"{name!r} is no session's name", context, parameter)
    return names


@sessions.command(name="rm")
@click.argument("names", nargs=-1, required=True, metavar="NAME…", callback=_names)
@json_option
@pass_session
def remove_sessions(session: Session, names: tuple[str, ...]) -> None:
    """Remove sessions with their points. Naming one that is not there is no failure."""
    with session.client() as client:
        answer = client.call("DELETE", Route.SESSIONS, {"names": list(names)})
    for name in answer.get("missing", []):
        note(f"there is no session {name}")
    from cli.render.lines import text

    session.emit(answer, lambda: [text(f"{count(int(answer.get('removed', 0)), 'session')} removed")])
