"""sessions: the sessions that `ask --deep --session` continues."""

import re
from collections.abc import Sequence

import click
from rich.text import Text

from cli.client.typed_answers import parse_answer
from cli.options.global_options import Invocation, json_option, pass_invocation
from cli.output import print_note, width
from cli.render.lines import DIM, HEADING, indent, text
from cli.terminal_text import count, local_time, one_line
from daemon.contract.answering.ask import SessionEntry, SessionList
from daemon.contract.http.routes import SESSION_PATTERN, Route


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
    answer = invocation.call("GET", Route.SESSIONS)
    invocation.emit(answer, lambda: _session_lines(parse_answer(SessionList, answer).sessions, width()))


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
    invocation.emit(answer, lambda: [text(f"{count(int(answer.get('removed', 0)), 'session')} removed")])


def _session_lines(sessions: Sequence[SessionEntry], width: int) -> list[Text]:
    lines: list[Text] = []
    for entry in sessions:
        lines += [*([Text()] if lines else []), *_entry(entry, width)]
    return lines or [text("There are no sessions.")]


def _entry(entry: SessionEntry, width: int) -> list[Text]:
    if entry.error:
        return [text((entry.name, HEADING)), *indent(text((entry.error, "red")), 2, width)]
    facts = f"{count(len(entry.points), 'point')} at commit {entry.commit} · used {local_time(entry.used_at)}"
    lines = [text((entry.name, HEADING), (f"  {facts} · kept until {local_time(entry.expires_at)}", DIM))]
    if entry.scope is not None:
        lines += indent(text((f"within {one_line(entry.scope.model_dump_json())}", DIM)), 2, width)
    for asked in entry.questions:
        lines += indent(text(("? ", "cyan"), one_line(asked.question)), 2, width)
        if asked.answer:
            lines += indent(text(one_line(asked.answer)), 4, width)
    for description in entry.points:
        lines += indent(text(("• ", "green"), one_line(description)), 2, width)
    return lines
