"""Turns the status of a path into an event for the daemon, and records in the ledger what was reported."""

import os
import time
from collections.abc import Callable

from consumers.folder.due_paths import PendingRemovals
from consumers.folder.file_uri import file_uri
from consumers.folder.ledger import Entry, Ledger
from consumers.folder.tree.walk import Walker
from consumers.types import FileChanged, FileEvent, FileMoved, FileRefusal, FileRefused, FileRemoved, Fingerprint

COARSEST_MTIME_NS = 2_000_000_000
"""Coarsest resolution of file timestamps among the file systems in use: two seconds."""


class FileEventEmitter:
    """Emits the events of one folder. `emit` may block. For one thread."""

    def __init__(
        self,
        root: bytes,
        source: str,
        emit: Callable[[FileEvent], None],
        touched: Callable[[str, Fingerprint], None],
        walker: Walker,
    ) -> None:
        """`touched(uri, fingerprint)` receives the new stamp of a file whose content is already committed."""
        self.ledger = Ledger()
        self.pending_removals = PendingRemovals()
        self.scan_number = 0
        self.scanned = False
        """Whether the current events come from a scan that found many differences."""
        self._root = root.rstrip(b"/") + b"/"
        self._source = source
        self._emit = emit
        self._touched = touched
        self._walker = walker

    def settled(self, path: bytes, fingerprint: Fingerprint) -> None:
        """Reports a complete file as changed or moved. If its content is known, reports only its new stamp.

        If only mtime or inode differ, the new stamp is reported once the content is committed; before that, the file is
        reported as changed. If the stamp were stored before the content, the file would count as read after a restart.
        """
        entry = self.ledger.get(path)
        uri = file_uri(path)
        racy = abs(time.time_ns() - fingerprint.mtime_ns) < COARSEST_MTIME_NS
        committed = False
        same = entry is not None and entry.is_taken_in and entry.fingerprint.digest == fingerprint.digest
        if entry is not None and same and (entry.committed or entry.fingerprint == fingerprint):
            if entry.fingerprint != fingerprint:
                self._touched(uri, fingerprint)
            committed = entry.committed
        elif entry is None and (old := self._moved_from(fingerprint)) is not None:
            self._emit(FileMoved(file_uri(old), uri, path, self._source, fingerprint, self.scanned))
            self.ledger.pop(old)
            self.pending_removals.discard(old)
        else:
            self._emit(FileChanged(uri, path, self._source, fingerprint, self.scanned))
        self.ledger.put(path, Entry(fingerprint, committed=committed, racy=racy, scan=self.scan_number))

    def refused(self, path: bytes, refusal: FileRefusal, stat: os.stat_result | None) -> None:
        """Reports a file that is not read."""
        self.pending_removals.discard(path)
        entry = self.ledger.get(path)
        if entry is not None and entry.refused == refusal.reason:
            return
        # The fingerprint has no digest: a file that was never read must be examined again after a restart, even if unchanged.
        fingerprint = Fingerprint(stat.st_size, stat.st_mtime_ns, stat.st_ino) if stat else None
        self._emit(FileRefused(file_uri(path), self._source, refusal, fingerprint, self.scanned))
        self.ledger.put(path, Entry(fingerprint or Fingerprint(0, 0, 0), refused=refusal.reason, scan=self.scan_number))

    def removed(self, path: bytes) -> None:
        """Reports that the file is gone and drops its entry."""
        self._emit(FileRemoved(file_uri(path), self._source))
        self.ledger.pop(path)

    def is_reachable(self, path: bytes) -> bool:
        """Whether a walk would reach `path`: no directory above it is a link that is not followed."""
        if not path.startswith(self._root):
            return False
        end = path.find(b"/", len(self._root))
        while end != -1:
            directory = path[:end]
            found = self._walker.status_of(directory)
            if found.kind != "directory":
                return found.unknown
            entry = self.ledger.get(directory)
            if found.link and entry is not None and entry.refused is not None:
                return False
            end = path.find(b"/", end + 1)
        return True

    def _moved_from(self, fingerprint: Fingerprint) -> bytes | None:
        """Returns a vanished path that had this content, preferably with the same inode, or None."""
        best: bytes | None = None
        for path in self.pending_removals.with_digest(fingerprint.digest):
            entry = self.ledger.get(path)
            if (
                entry is None
                or entry.must_repeat
                or (self._walker.status_of(path).kind != "gone" and self.is_reachable(path))
            ):
                continue
            if entry.fingerprint.inode == fingerprint.inode:
                return path
            best = best or path
        return best
