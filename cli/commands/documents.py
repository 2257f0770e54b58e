"""ls, show, rm and retry: the documents that the memory holds."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.errors import Failure
from cli.output import note, width
from cli.session import Session, json_option, pass_session
from cli.text import count
from daemon.contract import DocumentEntry, DocumentState, Route, document_path

if TYPE_CHECKING:
    from rich.text import Text

    from cli.client import Client


PAGE = 2_000
"""Documents asked for at a time."""


def as_uri(name: str) -> str:
    """A file's URI for what is written as its path (/…, ./…, ../…, ~/…); anything else as it is."""
    if name.startswith(("/", "./", "../", "~/")):
        return Path(os.path.abspath(Path(name).expanduser())).as_uri()  # noqa: PTH100 - links stay as they are
    return name


@click.command(name="ls")
@click.option(
    "--state",
    type=click.Choice([state.value for state in DocumentState]),
    help="Only those in this state. Removed ones are never listed: `watch` tells of them.",
)
@click.option("--prefix", metavar="P", help="Only those whose URI begins with P (or with the URI of the path P).")
@json_option
@pass_session
def list_documents(session: Session, state: str | None, prefix: str | None) -> None:
    """List documents with their state, in order of URI; of failed and skipped ones, why."""
    begins = as_uri(prefix) if prefix else None
    if prefix and begins and prefix.endswith("/") and not begins.endswith("/"):
        begins += "/"  # a folder's, and not that of its neighbours whose names begin so
    chosen = {"state": state, "prefix": begins}
    with session.client() as client:
        documents = _pages(client, {key: value for key, value in chosen.items() if value is not None})
    from cli.client import read
    from cli.render.documents import documents as table
    from daemon.contract import DocumentList

    whole = {"documents": documents}
    session.emit(whole, lambda: table(read(DocumentList, whole).documents), wrap=False)


def _pages(client: "Client", chosen: Mapping[str, str]) -> list[Any]:
    params: dict[str, str | int] = {**chosen, "limit": PAGE}
    documents: list[Any] = []
    while True:
        answer = client.call("GET", Route.DOCUMENTS, params=params)
        documents += answer.get("documents", [])
        if not answer.get("next"):
            return documents
        params["after"] = answer["next"]


def all_documents(client: "Client") -> list[DocumentEntry]:
    """Every document that the memory holds, by URI."""
    from cli.client import read
    from daemon.contract import DocumentList

    return read(DocumentList, {"documents": _pages(client, {})}).documents


@click.command()
@click.argument("key", metavar="URI-OR-ID")
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="OUT",
    help="URI-OR-ID is a file that `ask --trace` wrote: draw it as a page that needs no network.",
)
@json_option
@pass_session
def show(session: Session, key: str, html: Path | None) -> None:
    """Show a document, passage, phrase or triple with what it is connected to; or draw the steps of an answer.

    Named by a document's URI or path, a passage's id, a phrase, or a triple as '["subject", "predicate", "object"]'.
    """
    if html is not None:
        _draw(session, Path(key), html)
        return
    with session.client() as client:
        answer = client.call("GET", document_path(as_uri(key)))
    from pydantic import TypeAdapter, ValidationError

    from cli.client import misunderstood
    from cli.render.show import card
    from daemon.contract import ShowResponse

    def lines() -> "list[Text]":
        try:
            thing: ShowResponse = TypeAdapter(ShowResponse).validate_python(answer)
        except ValidationError as error:
            raise misunderstood(error) from None
        return card(thing, width())

    session.emit(answer, lines)


def _draw(session: Session, trace: Path, out: Path) -> None:
    """No daemon is asked: the file holds all of it."""
    from cli.render.lines import text
    from cli.trace_page import page, read_trace

    answer = read_trace(trace)
    document = page(answer)
    try:
        out.write_text(document, "utf-8")
    except OSError as error:
        raise Failure(f"{out} cannot be written: {error.strerror or error}.") from None
    written = out.absolute().as_uri()
    said = {"written": written, "steps": len(answer.steps), "bytes": len(document.encode())}
    session.emit(said, lambda: [text(f"{count(len(answer.steps), 'step')} drawn: ", (written, "cyan"))])


@click.command()
@click.argument("uris", nargs=-1, required=True, metavar="URI…")
@json_option
@pass_session
def rm(session: Session, uris: tuple[str, ...]) -> None:
    """Remove documents, with every passage, phrase and triple that only they hold.

    A file that a source follows comes back when it changes: remove the file instead. Naming a document that is not
    there is no failure.
    """
    with session.client() as client:
        answer = client.call("DELETE", Route.DOCUMENTS, {"uris": [as_uri(uri) for uri in uris]})
    for uri in answer.get("missing_uris", []):
        note(f"there is no document {uri}")
    from cli.render.lines import text

    removed, missing = int(answer.get("removed", 0)), int(answer.get("missing", 0))
    tail = f"; {missing:,} not there" if missing else ""
    session.emit(answer, lambda: [text(f"{count(removed, 'document')} removed{tail}")])


@click.command()
@click.argument("uris", nargs=-1, metavar="[URI…]")
@json_option
@pass_session
def retry(session: Session, uris: tuple[str, ...]) -> None:
    """Try failed documents again now: those named, or all."""
    body = {"uris": [as_uri(uri) for uri in uris]} if uris else {}
    with session.client() as client:
        answer = client.call("POST", Route.RETRY, body)
    from cli.render.lines import text

    session.emit(answer, lambda: [text(f"{count(int(answer.get('requeued', 0)), 'document')} to be tried again")])
