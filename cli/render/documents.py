"""`ls` on a terminal: a table whose lines are never truncated, so that URIs can be copied and searched."""

from cli.render.lines import DIM, state, table, text
from cli.render.styled_text import Text
from cli.terminal_text import count, local_time, uri
from daemon.contract.choices import DocumentState
from daemon.contract.documents import DocumentEntry


def document_lines(entries: list[DocumentEntry]) -> list[Text]:
    if not entries:
        return [text("No documents.")]
    lines = table(("STATE", "PASSAGES", "COMMITTED", "DOCUMENT"), map(_row, entries), right=[1])
    with_reasons = [lines[0]]
    for entry, line in zip(entries, lines[1:], strict=True):
        with_reasons.append(line)
        with_reasons += [text("    ", (f"left out: {each.text}", DIM)) for each in entry.left_out]
        if entry.error:
            tried = f" (tried {count(entry.attempts, 'time')})" if entry.state is DocumentState.FAILED else ""
            with_reasons.append(text("    ", (f"{entry.error}{tried}", "red" if tried else "yellow")))
    return [*with_reasons, text((count(len(entries), "document"), DIM))]


def _row(entry: DocumentEntry) -> list[str | Text]:
    committed = text((local_time(entry.committed_at) or "-", DIM))
    return [text(state(entry.state.value)), f"{entry.passages:,}", committed, uri(entry.uri)]
