"""`reextract` and `backfill` on a terminal: the passages to extract from, and the cost of each extractor."""

from cli.render.lines import DIM, HEADING, align, text
from cli.render.styled_text import Text
from cli.terminal_text import count
from daemon.contract.status import ExtractionResponse


def extraction_lines(answer: ExtractionResponse, requeued: int) -> list[Text]:
    summary = f"{count(requeued, 'passage')} to read, {answer.waiting:,} waiting, {answer.failed:,} failed"
    heads = [text((head, HEADING)) for head in ("extractor", "extractions", "prompt tokens", "completion tokens")]
    rows = [
        [text(each.extractor), *(text(f"{n:,}") for n in (each.passages, each.prompt_tokens, each.completion_tokens))]
        for each in answer.spent
    ]
    lines = [text((answer.extractor, HEADING), f": {summary}")]
    if answer.waiting_for:
        lines.append(text(("waits for ", DIM), answer.waiting_for))
    if answer.note:
        lines.append(text(answer.note))
    return [*lines, *(align([heads, *rows], right=range(1, 4), indent=2) if rows else [])]
