"""`eval` on a terminal: one row a mode."""

from collections.abc import Sequence

from cli.render.lines import DIM, HEADING, align, text
from cli.render.styled_text import Text
from cli.terminal_text import count, milliseconds
from daemon.contract.evaluation import AnswerScores, EvalResponse


def evaluation_lines(results: Sequence[EvalResponse]) -> list[Text]:
    """Recall and the share of questions with every gold passage, by k, and the time of a query."""
    ks = list(results[0].recall)
    heads = ["mode", *(f"recall@{k}" for k in ks), *(f"all@{k}" for k in ks), "p50", "p95"]
    rows = [[text((head, HEADING)) for head in heads]]
    for result in results:
        shares = [*(result.recall[k] for k in ks), *(result.all[k] for k in ks)]
        times = [milliseconds(result.took_ms.p50), milliseconds(result.took_ms.p95)]
        rows.append(
            [text(result.mode or "(configured)"), *(text(f"{share:.4f}") for share in shares), *map(text, times)]
        )
    lines = [*align(rows, right=range(1, len(heads))), text((count(results[0].n, "question"), DIM))]
    for result in results:
        if (statistics := result.filter) is not None:
            summary = (
                f"{statistics.kept:.0%} of the triples kept, {statistics.emptied:,} queries left without, "
                f"{statistics.unfiltered:,} unfiltered"
            )
            lines.append(text(("recognition memory ", DIM), result.mode or "", (f": {summary}", DIM)))
        if (scores := result.answers) is not None:
            lines += answer_score_lines(scores)
    return lines


def answer_score_lines(scores: AnswerScores) -> list[Text]:
    """What the answers were worth and what they took."""
    tokens = f"{scores.prompt_tokens / scores.n:,.0f} + {scores.completion_tokens / scores.n:,.0f} tokens"
    calls = f"{scores.calls:.2f} calls"
    times = f", {milliseconds(scores.took_ms.p50)} (p95 {milliseconds(scores.took_ms.p95)})" if scores.took_ms else ""
    head = f"answers ({scores.answerer}): EM {scores.em:.4f}, F1 {scores.f1:.4f}"
    lines = [text(head, (f" of {scores.n:,}; a question: {tokens}, {calls}{times}", DIM))]
    if scores.entities_a_point is not None:
        lines.append(text(("points have ", DIM), f"{scores.entities_a_point:.2f}", (" entities on average", DIM)))
    if scores.failed:
        why = next(each.error for each in scores.questions if each.error)
        lines.append(text((f"{count(scores.failed, 'question')} without an answer: {why}", "red")))
    return lines
