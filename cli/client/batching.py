"""Sends many documents in requests of limited size, so that an invalid document does not block the others."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cli.client.http import RequestRefused
from cli.document_files import ReadyDocument, RejectedDocument
from daemon.contract.http.problem_type import ProblemType

BATCH_COUNT = 1_000
BATCH_BYTES = 4 * 1024 * 1024
"""Maximum size of one request. A single larger document is sent alone."""

_DOCUMENT_INDEX = re.compile(r"(?:documents|docs)[.\[](\d+)")

Send = Callable[[bytes], dict[str, Any]]


def batches(
    pieces: Iterable[ReadyDocument], count: int = BATCH_COUNT, size: int = BATCH_BYTES
) -> Iterator[list[ReadyDocument]]:
    """Yields the pieces in order, in lists of at most `count` pieces and `size` bytes."""
    batch: list[ReadyDocument] = []
    batch_bytes = 0
    for piece in pieces:
        if batch and (len(batch) == count or batch_bytes + len(piece.body) > size):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(piece)
        batch_bytes += len(piece.body) + 1
    if batch:
        yield batch


def send(batch: list[ReadyDocument], post: Send) -> Iterator[dict[str, Any] | RejectedDocument]:
    """Posts `{"documents": batch}`, and yields the answers and the rejected documents.

    Rejected documents are left out of the next request. If the daemon does not name them, the batch is halved until only they
    remain.
    """
    body = b'{"documents":[%s]}' % b",".join(piece.body for piece in batch)
    try:
        yield post(body)
    except RequestRefused as refused:
        if refused.type not in (ProblemType.INVALID, ProblemType.BAD_REQUEST, ProblemType.TOO_LARGE):
            raise
        if len(batch) == 1:
            yield RejectedDocument(batch[0].where, refused.message)
            return
        wrong = _refused_documents(refused, len(batch))
        for at in sorted(wrong):
            yield RejectedDocument(batch[at].where, wrong[at])
        rest = [piece for at, piece in enumerate(batch) if at not in wrong]
        parts = [rest] if wrong else [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
        for part in parts:
            if part:
                yield from send(part, post)


def _refused_documents(refused: RequestRefused, length: int) -> dict[int, str]:
    """Returns the daemon's error message for each rejected piece of the batch, by index."""
    errors = refused.problem.get("errors") if refused.problem else None
    wrong: dict[int, str] = {}
    for error in errors if isinstance(errors, list) else []:
        match = _DOCUMENT_INDEX.search(str(error.get("field", ""))) if isinstance(error, dict) else None
        if match and int(match[1]) < length:
            message = f"{str(error['field'])[match.end() :].lstrip('.]')}: {error.get('message', refused.message)}"
            wrong.setdefault(int(match[1]), message.lstrip(": "))
    return wrong
