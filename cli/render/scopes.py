"""`scopes` on a terminal: sources, labels and folders."""

from collections.abc import Sequence

from cli.document_names import readable_uri
from cli.render.lines import DIM, HEADING, text
from cli.render.styled_text import Text
from cli.terminal_text import count, one_line
from daemon.contract.scope import ScopeCount, ScopeList

SHOWN_FOLDERS = 40
"""Maximum number of folders that are shown; --json contains all of them."""


def scope_lines(found: ScopeList) -> list[Text]:
    """Return the lines of everything that a scope can name, with the number of documents."""
    folders = sorted(found.folders, key=lambda folder: (-folder.documents, folder.name))
    lines = [
        *_group("--source", found.sources),
        *_group("--label", found.labels),
        *_group("--in", folders[:SHOWN_FOLDERS]),
    ]
    if len(folders) > SHOWN_FOLDERS:
        lines.append(text((f"  and {count(len(folders) - SHOWN_FOLDERS, 'folder')} more; --json lists them", DIM)))
    return lines or [text("The memory contains no documents and follows no source.")]


def _group(option: str, counts: Sequence[ScopeCount]) -> list[Text]:
    if not counts:
        return []
    return [
        text((option, HEADING)),
        *(
            text(f"  {one_line(readable_uri(each.name))}  ", (count(each.documents, "document"), DIM))
            for each in counts
        ),
    ]
