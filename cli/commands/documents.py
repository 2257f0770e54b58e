"""ls, show, rm, retry and confirm: the documents of the memory."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError
from rich.text import Text

from cli.client.http import Client, RequestRefused
from cli.client.typed_answers import incompatible_answer, parse_answer
from cli.document_names import as_text, as_uri
from cli.errors import Exit
from cli.files import file_errors
from cli.options.global_options import Invocation, command
from cli.options.scope_options import scope_options, scope_parameter
from cli.options.time_type import Timestamp
from cli.output import print_note, width
from cli.render.lines import DIM, state, table, text
from cli.render.show import card_lines
from cli.terminal_text import count, local_time, one_line, uri
from daemon.contract.choices import DocumentState
from daemon.contract.documents import DocumentEntry, DocumentList, ShowResponse
from daemon.contract.http.routes import ProblemType, Route, document_path

LIST_PAGE_DOCUMENTS = 2_000
"""Number of documents per request."""


@command("ls")
@click.option(
    "--state",
    type=click.Choice([state.value for state in DocumentState]),
    help="Only documents in this state. Removed documents are never listed; `watch` reports removals.",
)
@click.option("--prefix", metavar="P", help="Only documents whose URI begins with P; P may be a path.")
@scope_options
def list_documents(invocation: Invocation, state: str | None, prefix: str | None, scope: dict[str, Any] | None) -> None:
    begins = as_uri(prefix) if prefix else None
    if prefix and begins and prefix.endswith("/") and not begins.endswith("/"):
        begins += "/"  # this folder only, not folders whose names begin with its name
    chosen = {"state": state, "prefix": begins, **scope_parameter(scope)}
    documents = _list_all(invocation.client(), {key: value for key, value in chosen.items() if value is not None})
    whole = {"documents": documents}
    invocation.emit(whole, lambda: _document_lines(parse_answer(DocumentList, whole).documents), wrap=False)


def _list_all(client: Client, chosen: Mapping[str, str]) -> list[Any]:
    params: dict[str, str | int] = {**chosen, "limit": LIST_PAGE_DOCUMENTS}
    documents: list[Any] = []
    while True:
        answer = client.call("GET", Route.DOCUMENTS, params=params)
        documents += answer.get("documents", [])
        if not answer.get("next"):
            return documents
        params["after"] = answer["next"]


def all_documents(client: Client, params: Mapping[str, str]) -> list[DocumentEntry]:
    """Returns all documents of the memory, or of the scope in `params`, in order of URI."""
    return parse_answer(DocumentList, {"documents": _list_all(client, params)}).documents


def _document_lines(entries: list[DocumentEntry]) -> list[Text]:
    """Returns a table whose lines are never truncated, so that URIs can be copied and searched."""
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


@command("show")
@click.argument("key", metavar="URI-OR-ID")
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="OUT",
    help="URI-OR-ID is a file that `ask --trace` wrote: draw it as a page that works offline.",
)
@scope_options
def show(invocation: Invocation, key: str, html: Path | None, scope: dict[str, Any] | None) -> None:
    """URI-OR-ID is a document's URI or path, a passage's id, a phrase, or a triple as '["subject", "predicate", "object"]'."""
    if html is not None:
        _draw_trace(invocation, Path(key), html)
        return
    answer = _shown(invocation.client(), key, scope_parameter(scope))

    def lines() -> list[Text]:
        try:
            thing: ShowResponse = TypeAdapter(ShowResponse).validate_python(answer)
        except ValidationError as error:
            raise incompatible_answer(error) from None
        return card_lines(thing, width())

    invocation.emit(answer, lines)


def _shown(client: Client, key: str, params: Mapping[str, str]) -> dict[str, Any]:
    """Returns the document if `key` is its path or URI, otherwise the passage, phrase or triple of this name."""
    uri, name = as_uri(key), as_text(key)
    try:
        return client.call("GET", document_path(uri), params=params)
    except RequestRefused as refused:
        if refused.type != ProblemType.NOT_FOUND or uri == name:
            raise
        try:
            return client.call("GET", document_path(name), params=params)
        except RequestRefused:
            raise refused from None


def _draw_trace(invocation: Invocation, trace: Path, out: Path) -> None:
    """Draws the steps in a trace file as a page, without the daemon."""
    from cli.graph.trace import read_trace, trace_page

    answer = read_trace(trace)
    document = trace_page(answer)
    with file_errors(out, "written"):
        out.write_text(document, "utf-8")
    written = out.absolute().as_uri()
    summary = {"written": written, "steps": len(answer.steps), "bytes": len(document.encode())}
    invocation.emit(summary, lambda: [text(f"{count(len(answer.steps), 'step')} drawn: ", (written, "cyan"))])


@command("rm")
@click.argument("uris", nargs=-1, metavar="[URI…]")
@click.option("--source", metavar="NAME", help="Remove what this source has committed. `status` names the sources.")
@click.option(
    "--committed-since",
    type=Timestamp(),
    metavar="TIME",
    help="With --source: only what it has committed since TIME, including documents that it has replaced since.",
)
@click.option("--yes", is_flag=True, help="With --source: remove the documents instead of listing them.")
def rm(
    invocation: Invocation, uris: tuple[str, ...], source: str | None, committed_since: str | None, yes: bool
) -> None:
    """A removed document of a followed file returns when the file changes: remove the file instead. An unknown URI is not an
    error. With --source, removes what a topic, or `added`, has added, for example after wrong messages; followed folders are
    refused."""
    if (source is None) == (not uris):
        raise click.UsageError("name documents, or a source with --source")
    if source is not None:
        _remove_source(invocation, source, committed_since, dry_run=not yes)
        return
    if committed_since is not None or yes:
        raise click.UsageError("--committed-since and --yes go with --source")
    answer = invocation.call("DELETE", Route.DOCUMENTS, {"uris": [as_uri(name) for name in uris]})
    for name in answer.get("missing_uris", []):
        print_note(f"document {uri(name)} does not exist")

    removed, missing = int(answer.get("removed", 0)), int(answer.get("missing", 0))
    tail = f"; {missing:,} not there" if missing else ""
    invocation.emit(answer, lambda: [text(f"{count(removed, 'document')} removed{tail}")])


def _remove_source(invocation: Invocation, source: str, committed_since: str | None, *, dry_run: bool) -> None:
    since = {} if committed_since is None else {"committed_since": committed_since}
    answer = invocation.call("POST", Route.REMOVE_SOURCE, {"source": source, "dry_run": dry_run, **since})
    documents, removed = list(answer.get("documents", [])), int(answer.get("removed", 0))

    def lines() -> list[Text]:
        summary = f"{count(removed, 'document')} removed"
        if dry_run:
            summary = f"{count(len(documents), 'document')} would be removed; add --yes to remove"
        return [*(text(uri(each)) for each in documents), text(summary)]

    invocation.emit(answer, lines, wrap=False)


@command("retry")
@click.argument("uris", nargs=-1, metavar="[URI…]")
def retry(invocation: Invocation, uris: tuple[str, ...]) -> None:
    """Exits with 1 if a named document does not exist."""
    body = {"uris": [as_uri(name) for name in uris]} if uris else {}
    answer = invocation.call("POST", Route.RETRY, body)
    missing, not_failed = answer.get("missing_uris", []), answer.get("not_failed_uris", [])
    for name in missing:
        print_note(f"document {uri(name)} does not exist")
    for name in not_failed:
        print_note(f"{uri(name)} has not failed: it is not tried again")
    invocation.emit(answer, lambda: [text(f"{count(int(answer.get('requeued', 0)), 'document')} to be tried again")])
    if missing:
        sys.exit(Exit.FAILED)


@command("confirm")
@click.argument("source")
def confirm(invocation: Invocation, source: str) -> None:
    """SOURCE is the folder's name, as `status` shows it. hippod keeps documents that a scan missed, if they are more than half
    of the folder's, because the drive may be mounted empty or the path may be wrong. After an upgrade it keeps documents
    that a new default exclusion leaves out. `status` and `doctor` show their number.
    """
    answer = invocation.call("POST", Route.CONFIRM, {"source": source})
    invocation.emit(
        answer, lambda: [text(f"{count(answer['documents'], 'document')} of {one_line(source)} are forgotten.")]
    )
