"""scopes: the values that --source, --label and --in accept."""

from collections.abc import Sequence

from rich.text import Text

from cli.client.typed_answers import parse_answer
from cli.document_names import readable_uri
from cli.options.global_options import Invocation, command
from cli.render.lines import DIM, HEADING, text
from cli.terminal_text import count, one_line
from daemon.contract.http.routes import Route
from daemon.contract.scope import ScopeCount, ScopeList

SHOWN_FOLDERS = 40
"""Maximum number of folders that are shown; --json contains all of them."""


@command("scopes")
def scopes(invocation: Invocation) -> None:
    answer = invocation.call("GET", Route.SCOPES)
    invocation.emit(answer, lambda: _scope_lines(parse_answer(ScopeList, answer)), wrap=False)


def _scope_lines(found: ScopeList) -> list[Text]:
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
