"""reextract and backfill: extract from passages that wait for it, and show the cost."""

import time
from typing import TYPE_CHECKING, Any

import click

from cli.daemon_progress import daemon_progress
from cli.errors import CommandError
from cli.options.global_options import Invocation, json_option, pass_invocation
from cli.output import print_note
from daemon.contract.http.routes import Route
from daemon.contract.status import ExtractionResponse

if TYPE_CHECKING:
    from cli.client.http import Client

EXTRACTION_POLL_INTERVAL_S = 0.5
OF_REQUEST = ("requeued", "passages", "calls", "tokens", "money", "left_s")
"""Fields that only the first response has: what the command has asked for."""


@click.command()
@click.option(
    "--dry-run", is_flag=True, help="Print what it would cost; with a model, it extracts a sample of 10 passages."
)
@click.option("--yes", is_flag=True, help="With a model: extract instead of printing the number of calls.")
@click.option("--no-wait", is_flag=True, help="Return when the work has begun.")
@json_option
@pass_invocation
def reextract(invocation: Invocation, dry_run: bool, yes: bool, no_wait: bool) -> None:
    """Extract triples again, with the configured extractor, from passages that another extractor has read.

    Applies to passages read by an earlier version of the rules, another model or another prompt. If that needs calls of a
    model, it is a dry run without --yes; the sample's extractions are kept. Old triples stay until the new ones are
    committed. You can interrupt and repeat the command; it continues with the rest.
    """
    from cli.client.typed_answers import parse_answer
    from cli.render.extraction import plan_lines

    if dry_run or not yes:
        with invocation.client() as client:
            answer = client.call("POST", Route.REEXTRACT, {"dry_run": True})
        plan = parse_answer(ExtractionResponse, answer)
        unconfirmed = bool(plan.calls) and not yes
        if dry_run or unconfirmed:
            invocation.emit(answer, lambda: plan_lines(plan, unconfirmed))
            return
    _run(invocation, Route.REEXTRACT, no_wait)


@click.command()
@click.option("--no-wait", is_flag=True, help="Return when the work has begun.")
@json_option
@pass_invocation
def backfill(invocation: Invocation, no_wait: bool) -> None:
    """Extract triples from all waiting passages with vLLM in the daemon, for the first load of a large drive.

    Needs [openie] backend = "vllm", otherwise exits with 4. You can interrupt and repeat the command.
    """
    _run(invocation, Route.BACKFILL, no_wait)


def _run(invocation: Invocation, route: Route, no_wait: bool) -> None:
    from cli.client.typed_answers import parse_answer

    with invocation.client() as client:
        begun = answer = client.call("POST", route)
        first = parse_answer(ExtractionResponse, answer)
        if not no_wait:
            answer = _wait_until_read(invocation, client, first, answer)
    last = parse_answer(ExtractionResponse, answer)
    from cli.render.extraction import extraction_lines

    asked = {key: begun[key] for key in OF_REQUEST if key in begun}
    invocation.emit({**answer, **asked}, lambda: extraction_lines(last, first.requeued))
    if last.error:
        raise CommandError(f"reading stopped: {last.error}")


def _wait_until_read(
    invocation: Invocation, client: "Client", first: ExtractionResponse, answer: dict[str, Any]
) -> dict[str, Any]:
    """Poll until no passages wait, and return the last answer. Prints the reason if the extraction itself waits."""
    from cli.client.typed_answers import parse_answer

    printed_reason = None
    with daemon_progress(invocation, "reading", ["extract"]):
        while True:
            now = parse_answer(ExtractionResponse, answer)
            if now.waiting_for != printed_reason and now.waiting_for is not None:
                print_note(f"waiting: {now.waiting_for}")
            printed_reason = now.waiting_for
            if not now.waiting or (first.running and not now.running):
                return answer
            time.sleep(EXTRACTION_POLL_INTERVAL_S)
            answer = client.call("GET", Route.EXTRACTION)
