"""Under systemd, turns the output that libraries print into log lines, so that it has a priority and a name."""

import io
import sys
import threading
from typing import TextIO

import structlog

from daemon.observe.logs import is_journal

LINE_CHARACTERS_MAX = 2_000

log = structlog.get_logger()


class _Lines(io.TextIOBase):
    """A text stream whose lines are logged at debug, because a library may print the content of documents."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = ""
        self._logging = threading.local()

    def write(self, text: str) -> int:
        *whole, self._begun = (self._begun + text).split("\n")
        for line in whole:
            self._log(line)
        if len(self._begun) > LINE_CHARACTERS_MAX:
            self._log(self._begun)
            self._begun = ""
        return len(text)

    def _log(self, line: str) -> None:
        if getattr(self._logging, "now", False):  # logging has failed and prints its own error
            self._stream.write(f"{line}\n")
        elif line.strip():
            self._logging.now = True
            try:
                log.debug("library_output", line=line[:LINE_CHARACTERS_MAX])
            finally:
                self._logging.now = False

    def fileno(self) -> int:
        return self._stream.fileno()

    def writable(self) -> bool:
        return True


def log_library_output() -> None:
    """Redirects the output of Python code to the log. Output of compiled code still goes to the journal unchanged."""
    if is_journal(sys.stderr):
        sys.stdout, sys.stderr = _Lines(sys.stdout), _Lines(sys.stderr)
