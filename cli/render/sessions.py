"""`sessions` on a terminal: each session with its questions and points."""

from collections.abc import Sequence

from cli.render.lines import DIM, HEADING, indent, text
from cli.render.styled_text import Text
from cli.terminal_text import count, local_time, one_line
from daemon.contract.answering.sessions import SessionEntry


def session_lines(sessions: Sequence[SessionEntry], width: int) -> list[Text]:
    """Return the lines of each session with its questions and points."""
    lines: list[Text] = []
    for entry in sessions:
        lines += [*([Text()] if lines else []), *_entry(entry, width)]
    return lines or [text("There are no sessions.")]


def _entry(entry: SessionEntry, width: int) -> list[Text]:
    if entry.error:
        return [text((entry.name, HEADING)), *indent(text((entry.error, "red")), 2, width)]
    facts = f"{count(len(entry.points), 'point')} at commit {entry.commit} · used {local_time(entry.used_at)}"
    lines = [text((entry.name, HEADING), (f"  {facts} · kept until {local_time(entry.expires_at)}", DIM))]
    if entry.scope is not None:
        lines += indent(text((f"within {one_line(entry.scope.model_dump_json())}", DIM)), 2, width)
    for asked in entry.questions:
        lines += indent(text(("? ", "cyan"), one_line(asked.question)), 2, width)
        if asked.answer:
            lines += indent(text(one_line(asked.answer)), 4, width)
    for description in entry.points:
        lines += indent(text(("• ", "green"), one_line(description)), 2, width)
    return lines
