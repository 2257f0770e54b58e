"""add and import: documents that do not come from a followed source."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from cli.client.typed_answers import parse_answer
from cli.client.uploads import CorpusCheck, RecordFile, batches, record_files, send
from cli.daemon_progress import daemon_progress
from cli.document_files import DocumentResult, ReadyDocument, RefuseCorpus, RejectedDocument, read_file, read_json_lines
from cli.errors import Exit
from cli.files import file_errors
from cli.options.global_options import Invocation, command
from cli.output import ShowProgress, print_json, print_lines, print_note, progress
from cli.render.lines import text
from cli.terminal_text import count, size
from daemon.contract.http.routes import Route
from daemon.contract.transfer import ImportResponse

UPLOAD_CHUNK_BYTES = 1024 * 1024
ID_PREFIX_CHARS_MAX = 200
REJECTED_SHOWN = 20
"""Number of rejected documents that are printed on stderr; the JSON answer contains all of them."""


def _prefix(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not value.isprintable() or len(value) > ID_PREFIX_CHARS_MAX:
        message = f"must be printable characters, {ID_PREFIX_CHARS_MAX} at most"
        raise click.BadParameter(message, context, parameter)
    return value.rstrip("/")


@command("add")
@click.argument("files", nargs=-1, required=True, metavar="FILE… | -", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--id-prefix",
    default="",
    metavar="PREFIX",
    callback=_prefix,
    help="Put PREFIX/ before the ids of JSON documents: files whose ids are equal do not replace each other's documents.",
)
@click.option(
    "--replace", is_flag=True, help="Add a HippoRAG corpus although its ids belong to documents with other titles."
)
def add(invocation: Invocation, files: tuple[Path, ...], id_prefix: str, replace: bool) -> None:
    """A .json file contains one document or an array of documents (such as a HippoRAG corpus), a .jsonl file one document a
    line: {"id", "title", "text", …}. A document with the same id is replaced. A corpus numbers its documents from 0: it is
    refused if its numbers belong to documents with other titles. After the command returns, a crash does not lose the documents
    that it names as added. Invalid documents are reported with their lines and the others are added; the exit code is then 1.
    """
    rejected: list[RejectedDocument] = []
    accepted, replaced, uris = 0, 0, list[str]()
    client = invocation.client()
    with progress("adding") as shown:
        refuse = None if replace else CorpusCheck(client, id_prefix).refuse
        for batch in batches(_ready_documents(files, id_prefix, refuse, rejected, shown)):
            for answer in send(batch, partial(client.call, "POST", Route.DOCUMENTS)):
                if isinstance(answer, RejectedDocument):
                    _reject(rejected, answer)
                    continue
                accepted += int(answer.get("accepted", 0))
                replaced += int(answer.get("replaced", 0))
                uris += answer.get("documents", [])
                shown(f"{count(accepted, 'document')} added")
    whole: dict[str, Any] = {"accepted": accepted, "documents": uris}
    whole |= {"replaced": replaced} if replaced else {}
    whole |= {"rejected": [each.to_json() for each in rejected]} if rejected else {}
    only = f": {uris[0]}" if len(uris) == 1 else ""
    again = f" ({replaced:,} replaced)" if replaced else ""
    invocation.emit(whole, lambda: [text(f"{count(accepted, 'document')} added{only}{again}")], wrap=False)
    if rejected:
        print_note(f"{count(len(rejected), 'document')} could not be added.")
        sys.exit(Exit.FAILED)


def _ready_documents(
    files: tuple[Path, ...],
    id_prefix: str,
    refuse: RefuseCorpus | None,
    rejected: list[RejectedDocument],
    shown: ShowProgress,
) -> Iterator[ReadyDocument]:
    for path in files:
        shown(f"reading {path}")
        items: Iterator[DocumentResult] = (
            read_json_lines(sys.stdin.buffer, "stdin", id_prefix)
            if str(path) == "-"
            else read_file(path, id_prefix, refuse)
        )
        for item in items:
            if isinstance(item, ReadyDocument):
                yield item
            else:
                _reject(rejected, item)


def _reject(rejected: list[RejectedDocument], item: RejectedDocument) -> None:
    rejected.append(item)
    if len(rejected) <= REJECTED_SHOWN:
        print_note(f"{item.where}: {item.error}")
    elif len(rejected) == REJECTED_SHOWN + 1:
        print_note("…further ones are counted; --json lists all of them.")


@command("import")
@click.argument("place", metavar="URL")
def import_(invocation: Invocation, place: str) -> None:
    """Records are documents that hippod-worker or hippod-backfill has parsed, extracted and encoded; hippod does not repeat
    that work. The passages of a HippoRAG file become documents, and its triples are used unchanged. A second import of the same
    file changes nothing.
    """
    answers: list[dict[str, int]] = []
    with daemon_progress(invocation, f"importing {place}", ["import"]) as shown:
        for file in record_files(place):
            sent = 0

            def chunks(file: RecordFile = file) -> Iterator[bytes]:
                nonlocal sent
                sent = 0  # a repeated request to a busy daemon starts from the beginning
                with file_errors(file.name, "read"), file.open() as stream:
                    while chunk := stream.read(UPLOAD_CHUNK_BYTES):
                        yield chunk
                        sent += len(chunk)
                        shown(f"{file.name}: {size(sent)} of {size(file.size)} sent", sent, file.size)

            answers.append(invocation.call("POST", Route.IMPORT, chunks))
    total = {key: sum(answer.get(key, 0) for answer in answers) for key in answers[0]}
    if invocation.json:
        print_json(total)
        return
    imported = parse_answer(ImportResponse, total)
    what = "malformed triple" if imported.records is None else "unreadable record"
    skipped = f"; {count(imported.skipped, what)} skipped" if imported.skipped else ""
    records = f"{count(imported.records, 'record')} with " if imported.records is not None else ""
    passages, triples = count(imported.passages, "passage"), count(imported.triples, "triple")
    print_lines([text(f"{records}{passages} and {triples} imported{skipped}")])
