"""query and ask: what the memory is for."""

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from cli.output import show, width
from cli.session import Session, json_option, pass_session
from cli.settings import settings_option
from daemon.contract import AskResponse, Filter, Mode, QueryResponse, Route
from daemon.contract.requests import K_MAX, QUERY_CHARS

ASK_S = 900.0
"""How long an answer that a model writes may take."""

Command = TypeVar("Command", bound=Callable[..., Any])
MODES = click.Choice([mode.value for mode in Mode])


class Moment(click.ParamType["str | int"]):
    """A date, or a date and time; without an offset it is this machine's local time. A whole number is a commit's."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        # All digits are a commit's number: no date is written like that but by leaving out the dashes.
        if str(value).isascii() and str(value).isdigit() and int(value) > 0:
            return int(value)
        try:
            return datetime.fromisoformat(value).astimezone().isoformat()
        except (ValueError, OverflowError):
            known = "2026-03-01, 2026-03-01T12:00, 2026-03-01T12:00:00Z or a commit's number"
            self.fail(f"{value!r} is no time; write {known}", param, ctx)


def _text(context: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> str:
    text = " ".join(words).strip()
    if not text:
        raise click.BadParameter("is empty", context, parameter)
    if len(text) > QUERY_CHARS:
        raise click.BadParameter(f"has {len(text):,} characters; {QUERY_CHARS:,} are the most", context, parameter)
    return text


def _question(command: Command) -> Command:
    """TEXT, in quotes or as several words, and how many passages."""
    command = click.option(
        "-k", type=click.IntRange(1, K_MAX), default=5, show_default=True, help="Number of passages."
    )(command)
    return click.argument("text", nargs=-1, required=True, metavar="TEXT", callback=_text)(command)


@click.command()
@_question
@click.option("--mode", type=MODES, help="How passages are found; the configured way by default.")
@click.option(
    "--filter", "filter_", type=click.Choice([each.value for each in Filter]), help="Who filters the linked triples."
)
@click.option("--as-of", type=Moment(), metavar="TIME|COMMIT", help="Ask the memory as it was then.")
@click.option("--explain", is_flag=True, help="Say of each passage what brought it there.")
@settings_option
@json_option
@pass_session
def query(
    session: Session,
    text: str,
    k: int,
    mode: str | None,
    filter_: str | None,
    as_of: str | int | None,
    explain: bool,
    settings: dict[str, Any],
) -> None:
    """Find the passages that answer TEXT, and show the triples that led there."""
    chosen = {"mode": mode, "filter": filter_, "as_of": as_of, "explain": explain or None, "settings": settings or None}
    body = {"query": text, "k": k} | {key: value for key, value in chosen.items() if value is not None}
    with session.client() as client:
        answer = client.call("POST", Route.QUERY, body)
    from cli.client import read
    from cli.render.query import query as page

    session.emit(answer, lambda: page(read(QueryResponse, answer), width()))


@click.command()
@_question
@click.option("--deep", is_flag=True, help="Reason in several steps over a working memory.")
@click.option("--steps", type=click.IntRange(1, 20), metavar="N", help="Most steps of --deep.")
@json_option
@pass_session
def ask(session: Session, text: str, k: int, deep: bool, steps: int | None) -> None:
    """Answer TEXT from the memory, with citations. Needs a language model: exits with 4 where none is configured."""
    if steps is not None and not deep:
        raise click.UsageError("--steps is for --deep.")
    body = {"question": text, "k": k, "deep": deep} | ({} if steps is None else {"steps": steps})
    from cli.client import read
    from cli.render.ask import ask as page
    from cli.render.ask import basis

    with session.client() as client:
        if not session.json and sys.stdout.isatty():
            from cli.streaming import stream_answer

            said = stream_answer(client, body, ASK_S)
            show(basis(said, width()))
            return
        answer = client.call("POST", Route.ASK, body, timeout_s=ASK_S)
    session.emit(answer, lambda: page(read(AskResponse, answer), width()))
