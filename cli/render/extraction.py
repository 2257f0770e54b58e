"""`reextract` and `backfill` on a terminal: passages to extract from, extracted passages, and the cost of each extractor."""

from cli.render.lines import DIM, HEADING, table, text
from cli.render.styled_text import Text
from cli.terminal_text import count, duration
from daemon.contract.status import ExtractionResponse


def extraction_lines(answer: ExtractionResponse, requeued: int) -> list[Text]:
    summary = f"{count(requeued, 'passage')} to read, {answer.waiting:,} waiting, {answer.failed:,} failed"
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


def plan_lines(plan: ExtractionResponse, unconfirmed: bool) -> list[Text]:
    """Returns the plan of `reextract`, for example: 1,266 passages would be read again, in about 4 min 0 s."""
    passages = plan.passages or 0
    said = f"{count(passages, 'passage')} would be read again"
    if plan.calls:
        said += f", with at least {count(plan.calls, 'call')}"
        if plan.tokens is not None:
            said += f" and about {plan.tokens.prompt:,} prompt and {plan.tokens.completion:,} completion tokens"
    if plan.money is not None:
        said += f", for about {plan.money:,.2f}"
    if plan.left_s:
        said += f", in about {duration(plan.left_s)}"
    lines = [text((plan.extractor, HEADING), f": {said}{'; add --yes to read them' if unconfirmed else ''}")]
    return [*lines, *([text((plan.note, "yellow"))] if plan.calls and plan.note else [])]
