"""`eval --continual` on a terminal: one row a segment."""

from collections.abc import Sequence

from cli.evaluation.continual import Segment
from cli.render.lines import DIM, HEADING, align, text
from cli.render.styled_text import Text
from cli.terminal_text import count
from daemon.contract.evaluation import EvalResponse


def continual_lines(measured: Sequence[tuple[Segment, EvalResponse]], questions: int) -> list[Text]:
    """Recall and the share of questions with every gold passage, after each segment."""
    ks = list(measured[0][1].recall)
    heads = ["segment", "documents", "passages", *(f"recall@{k}" for k in ks), *(f"all@{k}" for k in ks)]
    rows = [[text((head, HEADING)) for head in heads]]
    for segment, result in measured:
        shares = [*(result.recall[k] for k in ks), *(result.all[k] for k in ks)]
        sizes = [f"{segment.number}", f"{segment.documents:,}", f"{segment.passages:,}"]
        rows.append([*map(text, sizes), *(text(f"{share:.4f}") for share in shares)])
    heading = (
        f"{count(measured[0][1].n, 'question')} of {questions}, answered by the first segment · {measured[0][1].mode}"
    )
    return [*align(rows, right=range(len(heads))), text((heading, DIM))]
