"""add and import: documents that no source follows."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from cli.documents import Item, Ready, Rejected, read_file, read_lines
from cli.errors import Exit, Failure
from cli.output import Progress, note, print_json, progress, show
from cli.session import Session, json_option, pass_session
from cli.text import count
from daemon.contract import ImportResponse, Route

SEND_S = 600.0
"""How long the daemon may take to make a request's documents durable."""
IMPORT_S = 3600.0
CHUNK = 1024 * 1024


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE… | -", type=click.Path(path_type=Path, allow_dash=True))
@json_option
@pass_session
def add(session: Session, files: tuple[Path, ...]) -> None:
    """Add documents: files of any known format, or JSON lines on standard input (-).

    A .json file holds one document or an array of them (a HippoRAG corpus is one), a .jsonl file one a line:
    {"id", "title", "text", …}. Once the command returns, a crash does not lose what it names as added. What cannot be a
    document is reported with its line while all others are sent; the exit code is then 1.
    """
    from cli.sending import batches, send  # httpx is loaded only by commands that ask the daemon

    rejected: list[Rejected] = []
    accepted, uris = 0, list[str]()
    with session.client() as client, progress("adding") as shown:
        for batch in batches(_ready(files, rejected, shown)):
            post = lambda body: client.call("POST", Route.DOCUMENTS, body, timeout_s=SEND_S)  # noqa: E731
            for answer in send(batch, "documents", post):
                if isinstance(answer, Rejected):
                    _reject(rejected, answer)
                    continue
                accepted += int(answer.get("accepted", 0))
                uris += answer.get("documents", [])
                shown.describe(f"{count(accepted, 'document')} added")
    answer = {"accepted": accepted, "documents": uris} | (
        {"rejected": [each.to_json() for each in rejected]} if rejected else {}
    )
    from cli.render.lines import text

    session.emit(answer, lambda: [text(f"{count(accepted, 'document')} added{_tail(uris)}")], wrap=False)
    if rejected:
        note(f"{count(len(rejected), 'document')} could not be added.")
        sys.exit(Exit.FAILED)


def _tail(uris: list[str]) -> str:
    return f": {uris[0]}" if len(uris) == 1 else ""


def _ready(files: tuple[Path, ...], rejected: list[Rejected], shown: Progress) -> Iterator[Ready]:
    for path in files:
        shown.describe(f"reading {path}")
        items: Iterator[Item] = read_lines(sys.stdin.buffer, "stdin") if str(path) == "-" else read_file(path)
        for item in items:
            if isinstance(item, Ready):
                yield item
            else:
                _reject(rejected, item)


def _reject(rejected: list[Rejected], item: Rejected) -> None:
    rejected.append(item)
    note(f"{item.where}: {item.error}")


@click.command(name="import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@json_option
@pass_session
def import_(session: Session, file: Path) -> None:
    """Take in a HippoRAG OpenIE results file: its passages as documents, its triples as they are."""
    try:
        total = file.stat().st_size
        file.open("rb").close()
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror or error}.") from None
    with session.client() as client, progress(f"importing {file.name}", total) as shown:

        def chunks() -> Iterator[bytes]:
            with file.open("rb") as stream:
                while chunk := stream.read(CHUNK):
                    yield chunk
                    shown.advance(len(chunk))
            shown.describe(f"{file.name} is sent and being indexed")

        answer = client.call("POST", Route.IMPORT, chunks, timeout_s=IMPORT_S)
    from cli.client import read

    if session.json:
        print_json(answer)
        return
    from cli.render.lines import text

    taken = read(ImportResponse, answer)
    skipped = f"; {count(taken.skipped, 'malformed triple')} skipped" if taken.skipped else ""
    show([text(f"{count(taken.passages, 'passage')} and {count(taken.triples, 'triple')} imported{skipped}")])
