"""Keeps the daemon's answers in a file while an evaluation runs, so that an interrupted evaluation can continue."""

import json
import os
from collections import defaultdict, deque
from hashlib import blake2b
from pathlib import Path
from typing import Any

from cli.errors import CommandError
from cli.files import file_errors


class AnswerJournal:
    """One JSON line per answer, with a hash of its request.

    The repeated command sends the same requests in the same order: the nth request of one hash gets the nth kept answer. Failed
    requests are not kept, so the repeated command sends them again.
    """

    def __init__(self, file: Path) -> None:
        """Reads the answers that an interrupted evaluation kept. An incomplete last line is removed."""
        self.file = file
        self._kept: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
        self.kept = 0
        """Number of answers in the file when it was opened."""
        for line in _whole_lines(file):
            try:
                entry = json.loads(line)
                self._kept[entry["request"]].append(entry["answer"])
            except (ValueError, TypeError, KeyError):
                raise CommandError(
                    f"{file} is not the journal of an evaluation.", hint="Delete it to ask every question again."
                ) from None
            self.kept += 1

    def take(self, route: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the next kept answer to a request; None if there is none."""
        kept = self._kept[_hash(route, body)]
        return kept.popleft() if kept else None

    def keep(self, route: str, body: dict[str, Any], answer: dict[str, Any]) -> None:
        line = json.dumps({"request": _hash(route, body), "answer": answer}) + "\n"
        with file_errors(self.file, "written"), self.file.open("a", encoding="ascii") as out:
            out.write(line)


def journal_of(saved: Path) -> Path:
    """Returns the file that keeps the answers of the evaluation that `--save` will write to `saved`."""
    return saved.with_name(f"{saved.name}.part")


def _whole_lines(file: Path) -> list[bytes]:
    """Returns the lines of a file that may be missing, and removes an incomplete last line."""
    with file_errors(file, "read"):
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            return []
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            os.truncate(file, len(whole))
    return whole.splitlines()


def _hash(route: str, body: dict[str, Any]) -> str:
    return blake2b(json.dumps([route, body], sort_keys=True).encode(), digest_size=16).hexdigest()
