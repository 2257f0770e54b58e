"""status, wait and watch: how the daemon is doing."""

import json
import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from cli.errors import Exit, Failure
from cli.output import Progress, note, print_json, progress, show
from cli.session import Session, json_option, pass_session
from daemon.contract import EVENT_STREAM, Event, Route, Status
from daemon.contract.requests import WAIT_MAX_S

_POLL_S = 0.5


class _Seconds(click.FloatRange):
    """A length of time; "nan" is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail("a number of seconds is wanted", param, ctx)
        return seconds


@click.command()
@json_option
@pass_session
def status(session: Session) -> None:
    """Show the daemon's state, what the memory holds, and each source with its lag."""
    with session.client() as client:
        _emit(session, client.call("GET", Route.STATUS))


@click.command()
@click.option(
    "--timeout", "timeout_s", type=_Seconds(min=0, max=WAIT_MAX_S), metavar="S", help="Give up after S seconds."
)
@json_option
@pass_session
def wait(session: Session, timeout_s: float | None) -> None:
    """Wait until all that the sources hold now is committed or failed.

    Exits with 5 when that takes longer than the timeout.
    """
    began = time.monotonic()
    with session.client() as client, progress("waiting") as shown, _polled(session, shown):
        while True:
            left = None if timeout_s is None else max(0.0, timeout_s - (time.monotonic() - began))
            silence = None if left is None else left + 10
            try:
                body = {} if left is None else {"timeout_s": left}
                answer = client.call("POST", Route.WAIT, body, timeout_s=silence, patience_s=0)
                break
            except Failure as failure:
                # A daemon that is still starting has read none of its sources: that is part of the wait.
                if failure.problem is None or failure.problem.get("status") != 503:
                    raise
                if left is not None and left <= _POLL_S:
                    raise Failure(failure.message, Exit.TIMED_OUT, problem=failure.problem) from None
                time.sleep(_POLL_S)
    _emit(session, answer)


@contextmanager
def _polled(session: Session, shown: Progress) -> Iterator[None]:
    """Describes, on a terminal, what is still to do while the daemon lets this client wait."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    threading.Thread(target=_poll, args=(session, shown, done), daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _poll(session: Session, shown: Progress, done: threading.Event) -> None:
    from cli.client import read
    from cli.render.status import waited

    try:
        with session.client() as client:
            while not done.wait(_POLL_S):
                shown.describe(waited(read(Status, client.call("GET", Route.STATUS, patience_s=0))))
    except Failure:
        return  # the request that is waited for tells what is wrong


@click.command()
@json_option
@pass_session
def watch(session: Session) -> None:
    """Print what happens, one event a line, until interrupted."""
    with session.client() as client, client.stream(Route.EVENTS, accept=EVENT_STREAM, timeout_s=None) as response:
        session.stdout_taken = True
        for data in _events(response.iter_lines()):
            if session.json:
                print_json(data, one_line=True)
            else:
                _print(data)
    raise Failure("hippod has stopped.", Exit.NO_DAEMON)


def _events(lines: Iterator[str]) -> Iterator[dict[str, object]]:
    """The data of server-sent events, which the daemon writes on one line each."""
    for line in lines:
        if line.startswith("data:"):
            try:
                data = json.loads(line.removeprefix("data:"))
            except ValueError:
                data = None
            if isinstance(data, dict):
                yield data
            else:
                note("hippod sent an event that is not understood.")


def _print(data: dict[str, object]) -> None:
    from cli.client import read
    from cli.render.events import event

    show([event(read(Event, data))], wrap=False)


def _emit(session: Session, answer: dict[str, object]) -> None:
    from cli.client import read
    from cli.render.status import status as page

    session.emit(answer, lambda: page(read(Status, answer)), wrap=False)
