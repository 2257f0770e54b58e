"""`ask` on a terminal: the answer, its sources, and its cost."""

from cli.query_highlights import snippet
from cli.render.lines import DIM, HEADING, hanging, indent, text
from cli.render.styled_text import Text
from cli.terminal_text import count, milliseconds, terminal_safe, uri
from daemon.contract.answering.ask import AskResponse


def answer_lines(answer: AskResponse, width: int) -> list[Text]:
    lines = [line for part in terminal_safe(answer.answer).splitlines() for line in indent(Text(part), 0, width)]
    return [*lines, *evidence_lines(answer, width)]


def evidence_lines(answer: AskResponse, width: int) -> list[Text]:
    """Returns the lines with the answer's sources and cost."""
    lines: list[Text] = []
    if answer.reasoning:
        lines += [Text(), text(("Reasoning", HEADING)), *indent(Text(terminal_safe(answer.reasoning)), 4, width)]
    if answer.citations:
        lines += [Text(), text(("Sources", HEADING))]
    for citation in answer.citations:
        title = text((f"{citation.rank:>2}", HEADING), "  ", (citation.title or "(no title)", HEADING))
        lines += hanging(title, 4, width)
        lines += indent(text((uri(citation.document), "cyan")), 4, width)
        lines += indent(Text(snippet(citation.text, None, 2 * (width - 6))), 4, width)
    tokens = f"{answer.tokens.prompt:,} + {answer.tokens.completion:,} tokens"
    steps = f"{count(len(answer.steps), 'step')}, {count(answer.calls, 'call')} · " if answer.steps else ""
    if answer.note:
        lines += [Text(), *indent(text((answer.note, DIM)), 0, width)]
    if answer.session is not None:
        lines += [Text(), text(("session ", DIM), answer.session.name, (_session(answer), DIM))]
    return [*lines, Text(), text((f"{steps}{tokens} · {milliseconds(answer.took_ms)}", DIM))]


def _session(answer: AskResponse) -> str:
    session = answer.session
    if session is None or not session.questions:
        return ": begun with this question"
    kept = count(session.points - session.forgotten, "point")
    return f": went on from {kept} of {count(session.questions, 'question')}"
