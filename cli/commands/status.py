"""status, wait and watch: the state and events of the daemon."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from cli.client.plain_answers import from_plain
from cli.daemon_progress import daemon_progress
from cli.errors import CommandError, Exit
from cli.options.global_options import Invocation, command
from cli.options.time_type import Duration
from cli.output import print_json, print_lines, print_note
from cli.render.lines import DIM, STATE_STYLES, text
from cli.render.status import status_lines
from cli.terminal_text import local_time, one_line, uri
from daemon.contract.http.routes import TIMEOUT_MAX_S, Route

if TYPE_CHECKING:
    from daemon.contract.status import Event

READY_POLL_INTERVAL_S = 0.5
_NOT_DETAILS = ("id", "time", "event", "uri")


@command("status")
def status(invocation: Invocation) -> None:
    _emit_status(invocation, invocation.call("GET", Route.STATUS))


@command("wait")
@click.option(
    "--timeout",
    "timeout_s",
    type=Duration(TIMEOUT_MAX_S),
    metavar="TIME",
    help="Give up after TIME, such as 60s or 5m.",
)
def wait(invocation: Invocation, timeout_s: float | None) -> None:
    """Exits with 5 if that takes longer than the timeout."""
    began = time.monotonic()
    client = invocation.client()
    with daemon_progress(invocation, "waiting", ("index", "extract")):
        while True:
            left = None if timeout_s is None else max(0.0, timeout_s - (time.monotonic() - began))
            try:
                answer = client.call("POST", Route.WAIT, {} if left is None else {"timeout_s": left}, patience_s=0)
                break
            except CommandError as failure:
                # A daemon that is still starting has not read its sources yet, so the command keeps waiting.
                if failure.problem is None or failure.problem.get("status") != 503:
                    raise
                if left is not None and left <= READY_POLL_INTERVAL_S:
                    raise CommandError(failure.message, Exit.TIMED_OUT, problem=failure.problem) from None
                time.sleep(READY_POLL_INTERVAL_S)
    _emit_status(invocation, answer)


@command("watch")
def watch(invocation: Invocation) -> None:
    with invocation.client().events(Route.EVENTS) as events:
        invocation.stdout_taken = True
        for _, data in events:
            if not isinstance(data, dict):
                print_note("hippod sent an event that is not understood.")
            elif invocation.json:
                print_json(data, one_line=True)
            else:
                print_lines([from_plain(_event_line, data)], wrap=False)
    raise CommandError("hippod has stopped.", Exit.NO_DAEMON)


def _event_line(each: "Event") -> Text:
    """Returns the line of an event: 12:00:01  indexed  file:///…  title="…"."""
    when = local_time(each.time, "%H:%M:%S")
    line = text((when, DIM), f"  {each.event:<8}  ")
    line.stylize(STATE_STYLES.get(each.event, ""), len(when) + 2)
    line.append_text(text(uri(each.uri) if each.uri else ""))
    details = _details(each.model_extra or {})
    line.append_text(text("  " if each.uri and details else "", (details, DIM)))
    return line


def _details(extra: Mapping[str, Any]) -> str:
    parts = (f"{key}={one_line(str(value))}" for key, value in extra.items() if value not in (None, "", [], {}))
    return " ".join(part for part in parts if part.partition("=")[0] not in _NOT_DETAILS)


def _emit_status(invocation: Invocation, answer: dict[str, object]) -> None:
    invocation.emit(answer, lambda: from_plain(status_lines, answer), wrap=False)
