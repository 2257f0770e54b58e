"""Append-only files of JSON lines: model answers that are not committed yet, and the costs of calls.

A line survives the end of the process; a power failure may lose the lines of the last seconds. If a file cannot be written
(disk full, no file descriptors), its owner continues, and the missing entries are written when writing works again.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import structlog

from store.durable_files import durable_file

REWRITE_BYTES = 4 * 1024 * 1024
"""Size at which a file is rewritten with the present entries only. If the present entries fill more than half of this size, the
limit becomes twice their size."""
RETRY_S = 2.0
"""Pause after a failed write before the file is written again."""

log = structlog.get_logger()


class AppendFile:
    """A file that stores the entries that its owner also keeps in memory. Only one thread may use an object of this class. If
    the path is None, nothing is written."""

    def __init__(
        self,
        path: Path | None,
        take: Callable[[Any], None],
        entries: Callable[[], Iterable[Mapping[str, Any]]],
        check: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Reads the file and calls `take` with each line's value. `take` raises KeyError, TypeError or ValueError for an
        unusable value; that line is skipped.

        `entries` returns the entries that the file should contain. `check` raises OSError if the file must not be replaced.
        """
        self._path = path
        self._entries = entries
        self._check = check
        self._clock = clock
        self._out: BinaryIO | None = None
        self._rewrite_at = REWRITE_BYTES
        self._next_try = float("-inf")
        self._is_written = True
        """Whether the last write succeeded. After a failed write with `_out` None, the file must be rewritten completely."""
        if path is not None and path.exists() and path.stat().st_size:
            self._read(path, take)
            self._rewrite()

    def append(self, entry: Mapping[str, Any]) -> None:
        """Writes an entry that `entries` already returns."""
        if self._out is None:
            self._rewrite()
            return
        try:
            self._out.write(_line(entry))
            self._out.flush()
        except OSError as error:
            self._failed(error)
            return
        if self._out.tell() > self._rewrite_at:
            self._rewrite()

    def trim(self) -> None:
        """Rewrites a large file without dropped entries; empties it if no entry is left. Call it after entries were dropped."""
        if self._out is None:
            if not self._is_written:
                self._rewrite()
        elif self._out.tell() > self._rewrite_at:
            self._rewrite()
        elif self._out.tell() and next(iter(self._entries()), None) is None:
            try:
                self._out.truncate(0)
                self._out.seek(0)
            except OSError as error:
                self._failed(error)

    def close(self) -> None:
        if self._out is None and not self._is_written:
            self._next_try = float("-inf")  # try once more, whatever the pause
            self._rewrite()
        self._close()

    def _read(self, path: Path, take: Callable[[Any], None]) -> None:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    take(json.loads(line))
                except (KeyError, TypeError, ValueError) as error:  # for example the incomplete last line after a crash
                    log.warning("line_skipped", file=str(path), error=error)

    def _rewrite(self) -> None:
        """Replaces the file atomically with the present entries. If that fails, the old file stays."""
        if self._path is None or self._clock() < self._next_try:
            return
        try:
            self._check()
            with durable_file(self._path) as file:
                file.writelines(map(_line, self._entries()))
            self._close()
            self._out = self._path.open("ab")
        except OSError as error:
            self._failed(error, intact=self._out is not None and os.fstat(self._out.fileno()).st_nlink > 0)
            return
        self._is_written = True
        self._rewrite_at = max(REWRITE_BYTES, 2 * self._out.tell())

    def _failed(self, error: OSError, intact: bool = False) -> None:
        """Logs the first error after a success. Closes the file unless it is `intact`, that is, still the file at the path."""
        self._next_try = self._clock() + RETRY_S
        if self._is_written:
            log.warning("lines_not_written", file=str(self._path), error=error, retry_s=RETRY_S)
        self._is_written = False
        if not intact:
            self._close()

    def _close(self) -> None:
        """Closes the file. Ignores errors: closing tries again to write buffered lines, which may fail again."""
        out, self._out = self._out, None
        if out is not None:
            with suppress(OSError):
                out.close()


def _line(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry).encode() + b"\n"
