"""ls, show, rm and retry: the documents of the memory."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.document_names import as_text, as_uri
from cli.errors import CommandError, Exit
from cli.options.global_options import Invocation, json_option, pass_invocation
from cli.options.scope_options import scope_options, scope_parameter
from cli.options.time_type import Timestamp
from cli.output import print_note, width
from cli.terminal_text import count
from daemon.contract.choices import DocumentState
from daemon.contract.documents import DocumentEntry
from daemon.contract.http.problem_type import ProblemType
from daemon.contract.http.routes import Route, document_path

if TYPE_CHECKING:
    from cli.client.http import Client
    from cli.render.styled_text import Text


LIST_PAGE_DOCUMENTS = 2_000
"""Number of documents per request."""


@click.command(name="ls")
@click.option(
    "--state",
    type=click.Choice([state.value for state in DocumentState]),
    help="Only documents in this state. Removed documents are never listed; `watch` reports removals.",
)
@click.option("--prefix", metavar="P", help="Only documents whose URI begins with P; P may be a path.")
@scope_options
@json_option
@pass_invocation
def list_documents(invocation: Invocation, state: str | None, prefix: str | None, scope: dict[str, Any] | None) -> None:
    """List documents by URI with their state, and the reason if a document failed or was skipped."""
    begins = as_uri(prefix) if prefix else None
    if prefix and begins and prefix.endswith("/") and not begins.endswith("/"):
        begins += "/"  # the folder itself, without folders whose names begin with its name
    chosen = {"state": state, "prefix": begins, **scope_parameter(scope)}
    with invocation.client() as client:
        documents = _list_all(client, {key: value for key, value in chosen.items() if value is not None})
    from cli.client.typed_answers import parse_answer
    from cli.render.documents import document_lines
    from daemon.contract.documents import DocumentList

    whole = {"documents": documents}
    invocation.emit(whole, lambda: document_lines(parse_answer(DocumentList, whole).documents), wrap=False)


def _list_all(client: "Client", chosen: Mapping[str, str]) -> list[Any]:
    params: dict[str, str | int] = {**chosen, "limit": LIST_PAGE_DOCUMENTS}
    documents: list[Any] = []
    while True:
        answer = client.call("GET", Route.DOCUMENTS, params=params)
        documents += answer.get("documents", [])
        if not answer.get("next"):
            return documents
        params["after"] = answer["next"]


def all_documents(client: "Client", params: Mapping[str, str]) -> list[DocumentEntry]:
    """Return all documents of the memory, or of the scope in `params`, in order of URI."""
    from cli.client.typed_answers import parse_answer
    from daemon.contract.documents import DocumentList

    return parse_answer(DocumentList, {"documents": _list_all(client, params)}).documents


@click.command()
@click.argument("key", metavar="URI-OR-ID")
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="OUT",
    help="URI-OR-ID is a file that `ask --trace` wrote: draw it as a page that works offline.",
)
@scope_options
@json_option
@pass_invocation
def show(invocation: Invocation, key: str, html: Path | None, scope: dict[str, Any] | None) -> None:
    """Show a document, passage, phrase or triple with its connections, or draw the steps of an answer.

    URI-OR-ID is a document's URI or path, a passage's id, a phrase, or a triple as '["subject", "predicate", "object"]'.
    """
    if html is not None:
        _draw_trace(invocation, Path(key), html)
        return
    with invocation.client() as client:
        answer = _shown(client, key, scope_parameter(scope))
    from pydantic import TypeAdapter, ValidationError

    from cli.client.typed_answers import incompatible_answer
    from cli.render.show import card_lines
    from daemon.contract.show import ShowResponse

    def lines() -> "list[Text]":
        try:
            thing: ShowResponse = TypeAdapter(ShowResponse).validate_python(answer)
        except ValidationError as error:
            raise incompatible_answer(error) from None
        return card_lines(thing, width())

    invocation.emit(answer, lines)


def _shown(client: "Client", key: str, params: Mapping[str, str]) -> dict[str, Any]:
    """Return what `key` names: a document if it is a document's path or URI, otherwise the thing of that name."""
    from cli.client.http import RequestRefused

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
    """Draw the steps in a trace file as a page, without the daemon."""
    from cli.render.lines import text
    from cli.trace.page import read_trace, trace_page

    answer = read_trace(trace)
    document = trace_page(answer)
    try:
        out.write_text(document, "utf-8")
    except OSError as error:
        raise CommandError(f"{out} cannot be written: {error.strerror or error}.") from None
    written = out.absolute().as_uri()
    summary = {"written": written, "steps": len(answer.steps), "bytes": len(document.encode())}
    invocation.emit(summary, lambda: [text(f"{count(len(answer.steps), 'step')} drawn: ", (written, "cyan"))])


@click.command()
@click.argument("uris", nargs=-1, metavar="[URI…]")
@click.option("--source", metavar="NAME", help="Remove what this source has committed. `status` names the sources.")
@click.option(
    "--committed-since",
    type=Timestamp(),
    metavar="TIME",
    help="With --source: only what it has committed since TIME, including documents that it has replaced since.",
)
@click.option("--yes", is_flag=True, help="With --source: remove the documents instead of listing them.")
@json_option
@pass_invocation
def rm(
    invocation: Invocation, uris: tuple[str, ...], source: str | None, committed_since: str | None, yes: bool
) -> None:
    """Remove documents, with all passages, phrases and triples that only these documents contain.

    A followed file comes back when it changes: remove the file instead. An unknown URI is not an error. With --source, removes
    what a topic, or `added`, has brought in, for example after wrong messages; followed folders are refused.
    """
    if (source is None) == (not uris):
        raise click.UsageError("name documents, or a source with --source")
    if source is not None:
        _remove_source(invocation, source, committed_since, dry_run=not yes)
        return
    if committed_since is not None or yes:
        raise click.UsageError("--committed-since and --yes go with --source")
    answer = invocation.call("DELETE", Route.DOCUMENTS, {"uris": [as_uri(name) for name in uris]})
    from cli.render.lines import text
    from cli.terminal_text import uri

    for name in answer.get("missing_uris", []):
        print_note(f"document {uri(name)} does not exist")

    removed, missing = int(answer.get("removed", 0)), int(answer.get("missing", 0))
    tail = f"; {missing:,} not there" if missing else ""
    invocation.emit(answer, lambda: [text(f"{count(removed, 'document')} removed{tail}")])


def _remove_source(invocation: Invocation, source: str, committed_since: str | None, *, dry_run: bool) -> None:
    since = {} if committed_since is None else {"committed_since": committed_since}
    answer = invocation.call("POST", Route.REMOVE_SOURCE, {"source": source, "dry_run": dry_run, **since})
    from cli.render.lines import text
    from cli.terminal_text import uri

    documents, removed = list(answer.get("documents", [])), int(answer.get("removed", 0))

    def lines() -> "list[Text]":
        said = f"{count(removed, 'document')} removed"
        if dry_run:
            said = f"{count(len(documents), 'document')} would be removed; add --yes to remove"
        return [*(text(uri(each)) for each in documents), text(said)]

    invocation.emit(answer, lines, wrap=False)


@click.command()
@click.argument("uris", nargs=-1, metavar="[URI…]")
@json_option
@pass_invocation
def retry(invocation: Invocation, uris: tuple[str, ...]) -> None:
    """Try failed documents again now: those named, or all. Exits with 1 if a named document does not exist."""
    body = {"uris": [as_uri(name) for name in uris]} if uris else {}
    answer = invocation.call("POST", Route.RETRY, body)
    from cli.render.lines import text
    from cli.terminal_text import uri

    missing, not_failed = answer.get("missing_uris", []), answer.get("not_failed_uris", [])
    for name in missing:
        print_note(f"document {uri(name)} does not exist")
    for name in not_failed:
        print_note(f"{uri(name)} has not failed: it is not tried again")
    invocation.emit(answer, lambda: [text(f"{count(int(answer.get('requeued', 0)), 'document')} to be tried again")])
    if missing:
        sys.exit(Exit.FAILED)
