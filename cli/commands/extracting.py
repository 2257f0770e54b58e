"""reextract and backfill: having the extractor read what it has not read, and seeing what that costs."""

import time
from typing import Any

import click

from cli.errors import Failure
from cli.output import note, progress
from cli.session import Session, json_option, pass_session
from daemon.contract import ExtractionResponse, Route

PAUSE_S = 0.5


@click.command()
@click.option("--no-wait", is_flag=True, help="Return once it has begun.")
@json_option
@pass_session
def reextract(session: Session, no_wait: bool) -> None:
    """Have the configured extractor read every passage again that the rules, another model or another prompt has read.

    Old triples stay until the new ones are there. It may be interrupted: what is done is done, and the command goes on
    with the rest when it is given again.
    """
    _run(session, Route.REEXTRACT, no_wait)


@click.command()
@click.option("--no-wait", is_flag=True, help="Return once it has begun.")
@json_option
@pass_session
def backfill(session: Session, no_wait: bool) -> None:
    """Read everything that waits for the extractor with vLLM, inside the daemon: for the first load of a large drive.

    Needs [openie] backend = "vllm": exits with 4 otherwise. It may be interrupted and given again.
    """
    _run(session, Route.BACKFILL, no_wait)


def _run(session: Session, route: Route, no_wait: bool) -> None:
    from cli.client import read

    with session.client() as client:
        answer = client.call("POST", route)
        first = read(ExtractionResponse, answer)
        if not no_wait:
            answer = _follow(client, first, answer)
    last = read(ExtractionResponse, answer)
    from cli.render.extraction import extraction

    session.emit({**answer, "requeued": first.requeued}, lambda: extraction(last, first.requeued))
    if last.error:
        raise Failure(f"reading stopped: {last.error}")


def _follow(client: Any, first: ExtractionResponse, answer: Any) -> Any:
    """Asks until nothing waits; says so where reading itself waits."""
    from cli.client import read

    told = None
    with progress("reading", first.waiting or None) as shown:
        left = first.waiting
        while True:
            now = read(ExtractionResponse, answer)
            if now.waiting < left:
                shown.advance(left - now.waiting)
                left = now.waiting
            if now.waiting_for != told and now.waiting_for is not None:
                note(f"waiting: {now.waiting_for}")
            told = now.waiting_for
            if not now.waiting or (first.running and not now.running):
                return answer
            time.sleep(PAUSE_S)
            answer = client.call("GET", Route.EXTRACTION)
