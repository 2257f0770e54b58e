"""Moves the log's commits into the tables, and limits the number of the tables' files.

Flushes and rewrites run concurrently with commits and queries. A commit waits only while the log begins a new file, and while
the change becomes visible.
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import structlog

from store.lance.layout import DATA, file_names, table_folder
from store.lance.schema import TABLES
from store.lance.table_writer import fragments_with_deletions
from store.log.commits import Commits

logger = structlog.get_logger(__name__)

FLUSH_BYTES = 16 << 20
"""Number of bytes at which the log is flushed into the tables. A flush takes half a second; replaying this much at a start
takes less."""

FLUSH_COMMITS = 2_000
"""Number of commits at which the log is flushed into the tables."""

MANY_FRAGMENTS = 64
"""Number of a table's fragments at which a flush may also rewrite the table. Each fragment adds about 0.1 ms to every flush."""

REWRITE_SHARE = 0.25
"""A table with many fragments is rewritten once the rows appended since its last rewrite reach this share of its other rows. So
the rewriting work per appended row is bounded, regardless of the table's size."""

MAX_FRAGMENTS = 1024
"""Number of fragments at which a table is rewritten in any case."""

MAX_RETRY_S = 600.0
"""Maximum pause in seconds before a failed flush is tried again. The pause begins with 2 s and doubles with each failure."""


class Compactor:
    """Rearranges the tables' files, one operation at a time."""

    def __init__(self, commits: Commits) -> None:
        self._tables = tables = commits.tables
        self._commits = commits
        self.lock = threading.Lock()
        """Must be held while table files are rearranged. Code that needs the files unchanged must hold it too."""
        self._flusher = ThreadPoolExecutor(1, thread_name_prefix="flush")
        self._flushing: Future[None] | None = None
        self._failures = 0
        """Number of failed flushes since the last successful one."""
        self._retry_at = 0.0
        """Time (monotonic clock) before which commits do not start a flush."""
        self.flush_error: Exception | None = None
        """Why the last flush failed; None if it succeeded."""
        self._rewritten = {name: tables.flushed_rows(name) for name in TABLES}
        """Number of rows of each table after its last rewrite, or at opening if that was later."""

    def flush_when_due(self) -> None:
        """If the log is long enough, starts flushing it in the background, concurrently with commits and queries."""
        due = self._commits.pending_bytes >= FLUSH_BYTES or len(self._tables.pending) >= FLUSH_COMMITS
        if due and time.monotonic() >= self._retry_at and (self._flushing is None or self._flushing.done()):
            try:
                self._flushing = self._flusher.submit(self._flush_in_background)
            except RuntimeError:  # no thread can be started
                logger.exception("flush_failed")

    def _flush_in_background(self) -> None:
        # If files are being rearranged or must not be rearranged, the log stays, and the next commit tries again.
        if not self.lock.acquire(blocking=False):
            return
        try:
            self._flush()
            self._rewrite_when_due()
        except Exception:
            # The result of this job is never read, so the error is logged here. A later commit tries again.
            logger.exception("flush_failed")
            raise
        finally:
            self.lock.release()

    def _flush(self) -> None:
        """The caller must hold `lock`, also for the methods below."""
        try:
            with self._commits.changing("flush"):
                pass
        except Exception as error:
            self._failures += 1
            self._retry_at = time.monotonic() + min(2.0**self._failures, MAX_RETRY_S)
            self.flush_error = error
            raise
        self._failures, self._retry_at, self.flush_error = 0, 0.0, None

    def _rewrite(self, names: Sequence[str]) -> None:
        """Merges all fragments of each table, and deletes its old versions."""
        for name in names:
            # Rewrites one table after another, so that at most one table occupies its space on the disk twice.
            with self._commits.changing("compact") as writer:
                writer.optimize(name)
            self._tables.clean(name)
            self._rewritten[name] = self._tables.flushed_rows(name)

    def compact_when_due(self) -> None:
        """Flushes the log, and rewrites the tables that have many fragments and enough appended rows."""
        with self.lock:
            self._flush()
            self._rewrite_when_due()

    def _rewrite_when_due(self) -> None:
        self._rewrite([name for name in TABLES if self._is_due(name)])

    def _is_due(self, name: str) -> bool:
        fragments = self._tables.fragment_count(name)
        if fragments < MANY_FRAGMENTS:
            return False
        rows = self._tables.flushed_rows(name)
        others = self._rewritten[name] = min(self._rewritten[name], rows)  # a purge may have deleted some
        return rows - others >= REWRITE_SHARE * others or fragments >= MAX_FRAGMENTS

    def compact(self, min_fragments: int) -> None:
        """Flushes the log, and rewrites the tables with at least `min_fragments` fragments."""
        with self.lock:
            self._flush()
            self._rewrite([name for name in TABLES if self._tables.fragment_count(name) >= min_fragments])

    def reclaim(self) -> None:
        """Deletes the bytes of deleted rows from the disk.

        Determines from the files which tables have such bytes, because an earlier purge may have ended before this step.
        """
        names = [name for name in TABLES if name != "commits" and self._has_deleted_rows(name)]
        self._rewrite(names)
        # Lance rewrites a fragment only if at least a tenth of its rows is deleted.
        left = {name: fragments for name in names if (fragments := fragments_with_deletions(self._tables.folder, name))}
        if left:
            with self._commits.changing("purge") as writer:
                for name, fragments in left.items():
                    for fragment in fragments:
                        writer.move_rows_from(name, fragment)
            self._rewrite(list(left))

    def _has_deleted_rows(self, name: str) -> bool:
        """Whether a table has files of deleted rows or files of old versions. Each present fragment has one data file."""
        folder = self._tables.folder
        files = len(file_names(table_folder(folder, name))[DATA])
        return files > self._tables.fragment_count(name) or bool(fragments_with_deletions(folder, name))

    def close(self) -> None:
        """Waits until the running flush has ended."""
        self._flusher.shutdown(cancel_futures=True)
