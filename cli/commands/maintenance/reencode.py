"""reencode: replace all vectors by those of the configured encoder."""

import time
from typing import TYPE_CHECKING, Any

import click

from cli.daemon_progress import daemon_progress
from cli.options.global_options import Invocation, json_option, pass_invocation
from cli.output import print_note
from daemon.contract.http.routes import Route
from daemon.contract.status import ReencodeResponse

if TYPE_CHECKING:
    from cli.client.http import Client

POLL_INTERVAL_S = 0.5
OF_REQUEST = ("passages", "texts", "calls", "left_s", "disk_bytes")
"""Fields of the first response, which say how much work the command has begun."""


@click.command()
@click.option("--no-wait", is_flag=True, help="Return when the work has begun.")
@json_option
@pass_invocation
def reencode(invocation: Invocation, no_wait: bool) -> None:
    """Encode the whole memory anew with the configured encoder, in the background.

    For use after a change of [encoder] and a restart. Queries use the old vectors until all new ones are there; then one commit
    replaces the vectors and the synonym edges. You can interrupt and repeat the command, and stop hippod: the work continues at
    the next start. Earlier commits (--as-of) cannot be queried afterwards.
    """
    from cli.client.typed_answers import parse_answer
    from cli.render.reencoding import reencoding_lines

    with invocation.client() as client:
        begun = answer = client.call("POST", Route.REENCODE)
        first = parse_answer(ReencodeResponse, answer)
        if first.running and not no_wait:
            answer = _wait_until_encoded(invocation, client, first)
    asked = {key: begun[key] for key in OF_REQUEST if key in begun}
    last = parse_answer(ReencodeResponse, answer)
    invocation.emit({**answer, **asked}, lambda: reencoding_lines(first, last))


def _wait_until_encoded(invocation: Invocation, client: "Client", answer: ReencodeResponse) -> dict[str, Any]:
    """Polls until the encoders are switched, and returns the last answer. Prints why the work waits, if it does."""
    from cli.client.typed_answers import parse_answer

    printed = None
    with daemon_progress(invocation, "encoding", ["reencode"]):
        while True:
            if answer.error is not None and answer.error != printed:
                print_note(f"waiting: {answer.error}")
            printed = answer.error
            time.sleep(POLL_INTERVAL_S)
            last = client.call("POST", Route.REENCODE)
            answer = parse_answer(ReencodeResponse, last)
            if not answer.running:
                return last
