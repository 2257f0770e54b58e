"""Writes the log's commits into the tables, and keeps the number of table files small.

Flushes and rewrites run concurrently with commits and queries; a commit waits only while the log begins a new file and while
the change becomes visible.
"""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

import structlog

from store.lance.layout import DATA, file_names, table_folder
from store.lance.schema import TABLES
from store.lance.table_writer import TableWriter, fragments_with_deletions
from store.lance.tables import Tables
from store.log.commits import CommitLog
from store.log.obsolete_rows import obsolete_rows
from store.log.write_lock import WriteLock
from store.maintenance.retention import PURGE_SLICE_ROWS

log = structlog.get_logger(__name__)

FLUSH_BYTES = 16 << 20
"""Bytes in the log after which it is written into the tables. A flush takes about half a second, the replay at a start less."""

FLUSH_COMMITS = 2_000
"""The same, as a number of commits."""

MANY_FRAGMENTS = 64
"""Number of a table's fragments after which a flush also rewrites the table. Each fragment costs every flush about 0.1 ms."""


class Compactor:
    """Rearranges the tables' files. One operation at a time, and none inside `paused`."""

    def __init__(self, tables: Tables, log: CommitLog, writing: WriteLock) -> None:
        self._tables = tables
        self._log = log
        self._write_lock = writing
        self._lock = threading.Lock()
        self._flusher = ThreadPoolExecutor(1, thread_name_prefix="flush")
        self._flushing: Future[None] | None = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Prevents all other operations on the files inside the `with` block."""
        with self._lock:
            yield

    def flush_when_due(self) -> None:
        """Starts writing the log into the tables in the background, concurrently with commits and queries."""
        due = self._log.pending_bytes >= FLUSH_BYTES or len(self._tables.pending) >= FLUSH_COMMITS
        if due and (self._flushing is None or self._flushing.done()):
            self._flushing = self._flusher.submit(self._flush_beside)

    def _flush_beside(self) -> None:
        # If files are being rearranged or must not be, the log stays: the next commit tries again.
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._flush()
            self._compact(MANY_FRAGMENTS)
        except Exception:
            # Nothing reads the result of this job. The next commits try again.
            log.exception("flush_failed")
            raise
        finally:
            self._lock.release()

    def _changing(self, job: str) -> AbstractContextManager[TableWriter]:
        return self._log.changing(lambda: self._write_lock.hold(job))

    def _flush(self) -> None:
        """The caller holds `paused`, also for the methods below."""
        with self._changing("flush"):
            pass

    def _rewrite(self, names: Sequence[str]) -> None:
        """Merges all fragments of each table, and deletes its old versions."""
        for name in names:
            # One table after another, so that the disk holds only one table twice.
            with self._changing("compact") as writer:
                writer.optimize(name)
            self._tables.clean(name)

    def compact(self, least: int) -> None:
        """Flushes the log, and rewrites tables that have `least` fragments or more."""
        with self._lock:
            self._flush()
            self._compact(least)

    def _compact(self, least: int) -> None:
        self._rewrite([name for name in TABLES if self._tables.fragment_count(name) >= least])

    def reclaim(self) -> None:
        """Removes the bytes of deleted rows from the disk.

        Finds by the files which tables have such bytes, because an earlier purge may have ended before this step.
        """
        names = [name for name in TABLES if name != "commits" and self._has_deleted_rows(name)]
        self._rewrite(names)
        # Lance rewrites a fragment only if a tenth of its rows is deleted.
        left = {name: fragments for name in names if (fragments := fragments_with_deletions(self._tables.folder, name))}
        if left:
            with self._changing("purge") as writer:
                for name, fragments in left.items():
                    for fragment in fragments:
                        writer.move_rows_from(name, fragment)
            self._rewrite(list(left))

    def _has_deleted_rows(self, name: str) -> bool:
        """Whether a table has files with deleted rows, or files of old versions. A fragment has one data file."""
        folder = self._tables.folder
        files = len(file_names(table_folder(folder, name))[DATA])
        return files > self._tables.fragment_count(name) or bool(fragments_with_deletions(folder, name))

    def trim_log(self, horizon: int, least: int) -> int:
        """Deletes log rows of commits before `horizon` if there are `least` or more; returns the number deleted."""
        rows = obsolete_rows(self._tables, horizon)
        if len(rows) < least:
            return 0
        with self._write_lock.hold("trim"):
            self._log.forget_before(horizon)
            facts = {"horizon": self._log.horizon}
            self._log.change_tables("trim", facts=facts, rowless_costs=self._log.last.rowless_costs)
        with self._changing("trim") as writer:
            for start in range(0, len(rows), PURGE_SLICE_ROWS):
                writer.delete("commits", rows[start : start + PURGE_SLICE_ROWS])
        return len(rows)

    def is_idle(self) -> bool:
        """Whether no file is being rearranged."""
        return not self._lock.locked()

    def close(self) -> None:
        """Waits for the running flush."""
        self._flusher.shutdown(cancel_futures=True)
