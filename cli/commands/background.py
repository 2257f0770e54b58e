"""reextract, backfill and reencode: start background work on stored passages and show its progress."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import click
from rich.text import Text

from cli.client.typed_answers import parse_answer
from cli.daemon_progress import daemon_progress
from cli.errors import CommandError
from cli.options.global_options import Invocation, command
from cli.output import print_note
from cli.render.lines import DIM, HEADING, table, text
from cli.terminal_text import count, duration, size
from daemon.contract.http.routes import Route
from daemon.contract.status import ExtractionResponse, ReencodeResponse

POLL_INTERVAL_S = 0.5
EXTRACTION_BEGUN = ("requeued", "passages", "calls", "tokens", "money", "left_s")
REENCODING_BEGUN = ("passages", "texts", "calls", "left_s", "disk_bytes")
"""Fields that only the first response contains: how much work the command has begun."""

no_wait_option = click.option("--no-wait", is_flag=True, help="Return when the work has begun.")


@command("reextract")
@click.option(
    "--dry-run", is_flag=True, help="Print what it would cost; with a model, it extracts a sample of 10 passages."
)
@click.option("--yes", is_flag=True, help="With a model: extract instead of printing the number of calls.")
@no_wait_option
def reextract(invocation: Invocation, dry_run: bool, yes: bool, no_wait: bool) -> None:
    """Applies to passages processed by an earlier version of the rules, another model or another prompt. If this needs calls of
    a model, it is a dry run without --yes; the sample's extractions are kept. Old triples stay until the new ones are
    committed. You can interrupt and repeat the command; it continues with the rest."""
    if dry_run or not yes:
        answer = invocation.call("POST", Route.REEXTRACT, {"dry_run": True})
        plan = parse_answer(ExtractionResponse, answer)
        unconfirmed = bool(plan.calls) and not yes
        if dry_run or unconfirmed:
            invocation.emit(answer, lambda: _plan_lines(plan, unconfirmed))
            return
    _extract(invocation, Route.REEXTRACT, no_wait)


@command("backfill")
@no_wait_option
def backfill(invocation: Invocation, no_wait: bool) -> None:
    """Needs [openie] backend = "vllm", otherwise exits with 4. You can interrupt and repeat the command."""
    _extract(invocation, Route.BACKFILL, no_wait)


def _extract(invocation: Invocation, route: Route, no_wait: bool) -> None:
    begun = answer = invocation.call("POST", route)
    first = last = parse_answer(ExtractionResponse, answer)
    if not no_wait:
        with daemon_progress(invocation, "reading", ["extract"]):
            for answer in _answers(begun, lambda: invocation.call("GET", Route.EXTRACTION), "waiting_for"):
                last = parse_answer(ExtractionResponse, answer)
                if not last.waiting or (first.running and not last.running):
                    break
    begin_fields = {key: begun[key] for key in EXTRACTION_BEGUN if key in begun}
    invocation.emit({**answer, **begin_fields}, lambda: _extraction_lines(last, first.requeued))
    if last.error:
        raise CommandError(f"extraction stopped: {last.error}")


@command("reencode")
@no_wait_option
def reencode(invocation: Invocation, no_wait: bool) -> None:
    """For use after a change of [encoder] and a restart. Queries use the old vectors until all new ones are there; then one
    commit replaces the vectors and the synonym edges. You can interrupt and repeat the command, and stop hippod: the work
    continues at the next start. Earlier commits (--as-of) cannot be queried afterwards.
    """
    begun = answer = invocation.call("POST", Route.REENCODE)
    first = last = parse_answer(ReencodeResponse, answer)
    if first.running and not no_wait:
        with daemon_progress(invocation, "encoding", ["reencode"]):
            for answer in _answers(begun, lambda: invocation.call("POST", Route.REENCODE), "error"):
                last = parse_answer(ReencodeResponse, answer)
                if not last.running:
                    break
    begin_fields = {key: begun[key] for key in REENCODING_BEGUN if key in begun}
    invocation.emit({**answer, **begin_fields}, lambda: _reencoding_lines(first, last))


def _answers(first: dict[str, Any], ask: Callable[[], dict[str, Any]], reason: str) -> Iterator[dict[str, Any]]:
    """Yields the first answer, then polls for the current one. Prints each new value of the field `reason`, which states
    why the work waits."""
    answer, printed = first, None
    while True:
        if answer.get(reason) is not None and answer[reason] != printed:
            print_note(f"waiting: {answer[reason]}")
        printed = answer.get(reason)
        yield answer
        time.sleep(POLL_INTERVAL_S)
        answer = ask()


def _extraction_lines(answer: ExtractionResponse, requeued: int) -> list[Text]:
    """Returns lines with the passages to extract from, the extracted passages, and the cost of each extractor."""
    summary = f"{count(requeued, 'passage')} to extract, {answer.waiting:,} waiting, {answer.failed:,} failed"
    heads = ("extractor", "extractions", "prompt tokens", "completion tokens")
    rows = [
        [each.extractor, *(f"{n:,}" for n in (each.passages, each.prompt_tokens, each.completion_tokens))]
        for each in answer.spent
    ]
    lines = [text((answer.extractor, HEADING), f": {summary}")]
    if answer.waiting_for:
        lines.append(text(("waits for ", DIM), answer.waiting_for))
    if answer.note:
        lines.append(text(answer.note))
    return [*lines, *(table(heads, rows, right=range(1, 4), indent=2) if rows else [])]


def _plan_lines(plan: ExtractionResponse, unconfirmed: bool) -> list[Text]:
    """Returns the plan of `reextract`, such as "1,266 passages would be extracted again, in about 4 min 0 s"."""
    passages = plan.passages or 0
    summary = f"{count(passages, 'passage')} would be extracted again"
    if plan.calls:
        summary += f", with at least {count(plan.calls, 'call')}"
        if plan.tokens is not None:
            summary += f" and about {plan.tokens.prompt:,} prompt and {plan.tokens.completion:,} completion tokens"
    if plan.money is not None:
        summary += f", for about {plan.money:,.2f}"
    if plan.left_s:
        summary += f", in about {duration(plan.left_s)}"
    lines = [text((plan.extractor, HEADING), f": {summary}{'; add --yes to extract from them' if unconfirmed else ''}")]
    return [*lines, *([text((plan.note, "yellow"))] if plan.calls and plan.note else [])]


def _reencoding_lines(first: ReencodeResponse, last: ReencodeResponse) -> list[Text]:
    """Returns the lines with the content to encode, the estimated time, and the disk space."""
    if first.configured is None:
        return [text((first.encoder, HEADING), ": the content is encoded as configured; nothing to do")]
    if not last.running:
        # `first` counts the texts that remained when it was written, which may be fewer than all texts.
        return [text((last.encoder, HEADING), ": everything is encoded anew; queries use the new vectors")]
    left = f", in about {duration(last.left_s)}" if last.left_s else ""
    calls = f", with at least {count(last.calls, 'call')}" if last.calls else ""
    waits = f"; waiting: {last.error}" if last.error else ""
    work = f"{count(last.texts, 'text')} of {count(last.passages, 'passage')} to encode{left}{calls}"
    return [text((first.configured, HEADING), f": {work}; it takes up to {size(last.disk_bytes)} on the disk{waits}")]
