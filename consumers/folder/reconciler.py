# ruff: noqa: PTH120
# Paths are bytes here, which pathlib does not take.
"""Follows one tree: takes hints about paths, compares these paths with the ledger, and emits the differences. One thread owns
it.

An inotify event, a poll or a scan only names the paths to examine. The report to the daemon depends only on a comparison of the
file with the ledger. So events that are lost, late, duplicated or out of order cost time, never correctness.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from consumers.folder.due_paths import MAX_UNSETTLED_S, DebounceQueue, Unsettled
from consumers.folder.event_emitter import FileEventEmitter
from consumers.folder.file_uri import file_uri, path_of
from consumers.folder.hardlinks import LINK_LOOK_S, HardLinks, LinkCheck
from consumers.folder.ledger import Entry
from consumers.folder.loss_guard import LossGuard
from consumers.folder.settings import FolderSettings
from consumers.folder.tree.file_status import FileStatus, Inode, SwappedError, read_fingerprint
from consumers.folder.tree.follow_rules import FollowRules
from consumers.folder.tree.walk import Walker
from consumers.openat import refusal_of_error
from consumers.types import EXCLUSIONS_VERSION, FileEvent, FileRefusal, Fingerprint

REMOVAL_GRACE_S = 0.1
"""Seconds before a vanished file is removed. The file may come back (an editor's save) or appear under another path
meanwhile."""

REMOVAL_EXTENSION_S = 1.0
"""Extension of `REMOVAL_GRACE_S`, repeated while an unread file with the same stamp is queued."""

SCAN_MANY_FILES = 16
"""Number of differences above which a scan counts as a first index or as a scan after a long pause. The daemon then
reads newly saved files before the scan's files. A scan with fewer differences, such as a poll, finds newly saved
files."""


class Reconciler:
    """The state of one followed tree. A faulty file never causes an exception. `emit` may block; `watch_directory` may
    raise."""

    def __init__(
        self,
        settings: FolderSettings,
        emit: Callable[[FileEvent], None],
        touched: Callable[[str, Fingerprint], None],
        watch_directory: Callable[[bytes, Inode, bool], None],
        documents: Callable[[str], int] = lambda _uri: 1,
        hard_links: HardLinks | None = None,
    ) -> None:
        """`documents(uri)` returns the number of documents in a file. `hard_links` is shared with other folders."""
        self.root = settings.root
        self.debounce = DebounceQueue()
        self.polling = settings.polling
        self.reading = False
        """Whether a file is being read: it has left the queue, and its event is not emitted yet."""
        self.links_need_rescan = False
        """The folder must be scanned again: a link was left out because its target was followed under another name, and
        that name is gone."""
        self._follow = settings.follow_symlinks
        self._settle_s = settings.settle_ms / 1000
        self._watch_directory = watch_directory
        self._rules = FollowRules(self.root, settings.include, settings.exclude)
        self._max_bytes = settings.max_bytes
        self._walker = Walker(self._rules, follow=self._follow, watch_directory=watch_directory)
        self.drives = self._walker.drives
        self._events = FileEventEmitter(self.root, settings.source, emit, touched, self._walker)
        self.ledger = self._events.ledger
        self.pending_removals = self._events.pending_removals
        self._hard_links = hard_links or HardLinks()
        self._link_check = LinkCheck(self.root, self.ledger, self._hard_links, follow=self._follow)
        self._marker_checks: set[bytes] = set()
        """Directories in `debounce` in which a marker of a default exclusion appeared or vanished."""
        self.loss = LossGuard(
            self.ledger, self.pending_removals, lambda path: documents(file_uri(path)), enabled=settings.confirm_loss
        )

    def load(self, known: Mapping[str, Fingerprint]) -> None:
        """Fills the ledger with the committed fingerprints. Files that are not below the root will be removed."""
        inside = self.root.rstrip(b"/") + b"/"
        for uri, fingerprint in known.items():
            path = path_of(uri)
            if not fingerprint.reads_as_far(self._max_bytes):
                fingerprint = replace(fingerprint, digest=None)
            self.ledger.put(path, Entry(fingerprint, committed=True))
            if not path.startswith(inside):
                self.pending_removals.put(path, 0, None)

    def excluded(self) -> dict[str, int]:
        """Returns the number of excluded files and directories by reason. Any thread may call it."""
        return self._walker.excluded()

    # Hints: which paths to examine.

    def file_saved(self, path: bytes) -> None:
        """Queues a file that a program closed after writing or moved into place: it is complete."""
        self._check_marker(path, 0)
        if self._may_follow(path):
            self.debounce.put(path, time.monotonic(), complete=True, content=True)

    def file_written(self, path: bytes) -> None:
        """Queues a file that is new or being written, until it is quiet."""
        self._check_marker(path, 0)
        if self._may_follow(path):
            self.debounce.put(path, time.monotonic(), self._settle_s, content=True)

    def metadata_changed(self, path: bytes) -> None:
        """Queues a path whose metadata changed, but probably not its content."""
        if self._may_follow(path) and path not in self.debounce:
            self.debounce.put(path, time.monotonic(), self._settle_s)

    def directory_appeared(self, path: bytes) -> None:
        """Compares a directory that is new, was moved here, or became readable."""
        self._check_marker(path, 0)
        if self._rules.enters(path):
            found = self._walker.status_of(path)
            if found.kind == "directory":
                self._compare(path, found)
            else:
                self.metadata_changed(path)

    def path_vanished(self, path: bytes) -> None:
        """Queues the removal of a file, or of a directory with all files below it, that was deleted or moved away."""
        self._check_marker(path, REMOVAL_GRACE_S)
        due = time.monotonic() + REMOVAL_GRACE_S
        for vanished in self.drives.on_mounted_drives(self.ledger.below(path)):
            self.loss.found(vanished)
            self._postpone_removal(vanished, due)
        self.links_need_rescan |= self._walker.forget_below(path)

    def recheck(self, path: bytes) -> None:
        """Queues the file to be read again as if it were new."""
        entry = self.ledger.get(path)
        if entry is not None:
            self.ledger.put(path, Entry(entry.fingerprint, refused="", committed=entry.committed))
        self.debounce.put(path, time.monotonic(), complete=True)

    def committed(self, path: bytes, fingerprint: Fingerprint | None) -> None:
        """Records that the daemon has committed the file.

        If `fingerprint` is None, the daemon did not commit the file: a file that was committed before is dropped from the
        ledger; a file that was only reported is reported again.
        """
        entry = self.ledger.get(path)
        if entry is None:
            return
        if fingerprint is not None:
            entry.committed = entry.fingerprint.digest == fingerprint.digest
        elif entry.committed:
            self.ledger.pop(path)
        elif entry.refused is None:
            entry.must_repeat = True
            self.debounce.put(path, time.monotonic())

    # Work: compare and emit.

    def scan(self, top: FileStatus) -> FileRefusal | None:
        """Compares the whole tree with the ledger. `top` is the status of the root. Returns the refusal if the root cannot be
        listed."""
        self.links_need_rescan = False
        self._walker.forget_all()
        self._hard_links.forget(self.root)
        return self._compare(self.root, top, scanning=True)

    def check_drives(self) -> None:
        """Compares the directories of drives that are mounted again: no event reports a mount."""
        for path in self.drives.take_returned():
            found = self._walker.status_of(path)
            if found.kind == "directory":
                self._compare(path, found)
            else:
                self.path_vanished(path)

    def settle_one(self, now: float) -> bool:
        """Processes one path that is due. Returns whether a path was due."""
        due = self.debounce.pop_due(now)
        if due is None:
            return False
        self.reading = True
        self._events.scanned = due[1].scanned
        try:
            self._settle(*due, now)
        finally:
            self.reading = False
            self._events.scanned = False
        return True

    def _settle(self, path: bytes, waiting: Unsettled, now: float) -> None:
        if path in self._marker_checks:
            self._marker_checks.discard(path)
            self._compare_if_markers_changed(path)
            return
        found = self._walker.status_of(path)
        if found.kind == "gone" or not self._events.is_reachable(path):
            self.path_vanished(path)
        elif found.kind == "directory":
            if self._rules.enters(path):
                self._compare(path, found)
        elif not self._rules.follows(path):
            self.path_vanished(path)
        elif found.refusal is not None:
            self._events.refused(path, found.refusal, found.stat)
        else:
            self._settle_file(path, waiting, found, now)

    def remove_one(self, now: float) -> None:
        """Removes one vanished path whose grace time is over, unless the file is back or may have moved."""
        due = self.pending_removals.pop_due(now)
        if due is None:
            return
        path, _ = due
        entry = self.ledger.get(path)
        found = self._walker.status_of(path)
        refusal = found.refusal
        exists = found.kind == "file" if refusal is None else refusal.may_recover or not found.unknown
        if entry is None:
            pass
        elif exists and self._rules.follows(path) and self._events.is_reachable(path):
            self.debounce.put(path, now, stamp=found.stamp)
        elif self.debounce.has_stamp(entry.fingerprint.stamp):
            # The file may have moved: a queued path has the same stamp.
            self._postpone_removal(path, now + REMOVAL_EXTENSION_S)
        elif not self.drives.is_on_unmounted_drive(path):
            self._events.removed(path)
            self._hard_links.removed(path, self.root)

    def _compare(self, top: bytes, first: FileStatus, *, scanning: bool = False) -> FileRefusal | None:
        """Queues the paths at which the tree at `top` and the ledger differ. Returns the refusal of the root if it cannot be
        listed."""
        self._events.scan_number += 1
        differing: list[tuple[bytes, FileStatus]] = []
        for path, found in self._walker.walk(top, first):
            if found.unknown:  # this path and the files below it may still be there
                for known in self.ledger.below(path):
                    self._mark_found(known)
                if path == self.root:
                    return found.refusal
            self._hard_links.add(path, found.stat)
            entry = self._mark_found(path)
            as_known = entry is not None and entry.refused is None and (found.unknown or entry.matches(found))
            if as_known and not self._link_check.is_shared(found):
                self.pending_removals.discard(path)
            else:
                differing.append((path, found))
            self._watch_target(path, found)
        missing = self.drives.on_mounted_drives(path for path in self.ledger.below(top) if self._is_missing(path))
        new = [found.stamp for path, found in differing if found.kind == "file" and path not in self.ledger]
        missing = self.loss.forgettable(missing, new, self._newly_excluded(missing), whole=scanning)
        self._queue_differences(differing, missing, scanning and self._are_many(differing))
        return None

    def _newly_excluded(self, missing: list[bytes]) -> dict[bytes, str]:
        """Returns the files among `missing` that only a new default exclusion leaves out, each with the exclusion's reason.

        An exclusion is new if its version is higher than the version in force when the file was read.
        """
        found = {}
        for path in missing:
            entry = self.ledger.get(path)
            if entry is None or entry.refused is not None or entry.fingerprint.exclusions >= EXCLUSIONS_VERSION:
                continue
            exclusion = self._rules.exclusion(path, folder=False)
            is_newer = exclusion is not None and exclusion.since > entry.fingerprint.exclusions
            if exclusion is not None and is_newer and self._walker.status_of(path).kind == "file":
                found[path] = exclusion.reason
        return found

    def _check_marker(self, path: bytes, wait_s: float) -> None:
        """Queues the directory of `path` if `path` is a marker. The marker appeared or vanished, so the directory's exclusions
        may have changed."""
        if self._rules.is_marker(path):
            directory = os.path.dirname(path)
            self._marker_checks.add(directory)
            self.debounce.put(directory, time.monotonic(), wait_s)

    def _compare_if_markers_changed(self, directory: bytes) -> None:
        """Compares `directory` if the set of directories that its markers exclude has changed."""
        above = os.path.dirname(directory)
        if directory != self.root and (not self._rules.enters(above) or self._rules.of_entry(directory, folder=True)):
            return
        found = self._walker.status_of(directory)
        if found.kind == "directory" and self._walker.marks_changed(directory):
            self._compare(directory, found)

    def _are_many(self, differing: list[tuple[bytes, FileStatus]]) -> bool:
        """Whether more than `SCAN_MANY_FILES` files are new or have a new stamp. All other files have their known stamp and are
        only examined again."""
        entries = ((self.ledger.get(path), found) for path, found in differing)
        new = sum(entry is None or entry.fingerprint.stamp != found.stamp for entry, found in entries)
        return new > SCAN_MANY_FILES

    def _queue_differences(
        self, differing: list[tuple[bytes, FileStatus]], missing: list[bytes], scanned: bool
    ) -> None:
        now = time.monotonic()
        stamps = {entry.fingerprint.stamp for path in missing if (entry := self.ledger.get(path)) is not None}
        wait = REMOVAL_GRACE_S
        for path in missing:
            entry = self.ledger.get(path)
            if entry is not None and entry.refused is not None and self._walker.status_of(path).kind == "directory":
                self._events.removed(path)  # the path was refused before and is a followed directory now
        for path, found in differing:
            if found.refusal is not None:  # report at once: only the walk knows why it refuses a directory or a link
                self._events.scanned = scanned
                self._events.refused(path, found.refusal, found.stat)
                self._events.scanned = False
                continue
            if path in self.debounce:
                continue
            stamp = found.stamp
            settled = stamp in stamps or (not self.polling and self._is_quiet(found))
            if not settled:
                wait = self._settle_s + REMOVAL_GRACE_S
            self.debounce.put(path, now, 0.0 if settled else self._settle_s, stamp=stamp, scanned=scanned)
        for path in missing:
            self._postpone_removal(path, now + wait)

    def _settle_file(self, path: bytes, waiting: Unsettled, found: FileStatus, now: float) -> None:
        entry = self.ledger.get(path)
        self.pending_removals.discard(path)
        self.loss.found(path)
        self._watch_target(path, found)
        if self._is_refused_by_links(path, waiting, found, entry, now) or (
            entry is not None and not waiting.content and entry.matches(found)
        ):
            return
        overdue = now - waiting.since >= MAX_UNSETTLED_S
        stamp = found.stamp
        if not (waiting.complete or overdue or waiting.stamp == stamp or (not self.polling and self._is_quiet(found))):
            self.debounce.put_back(path, waiting, now + self._settle_s, stamp)
            return
        try:
            fingerprint, steady = read_fingerprint(
                path, self.root, follow=self._follow, seen=found.stat, max_bytes=self._max_bytes
            )
        except SwappedError:
            self.debounce.put_back(path, waiting, now + self._settle_s, None)
            return
        except FileNotFoundError:
            self.path_vanished(path)
            return
        except OSError as error:
            self._events.refused(path, refusal_of_error(error), found.stat)
            return
        if steady or overdue:
            self._events.settled(path, fingerprint)
        else:
            self.debounce.put_back(path, waiting, now + self._settle_s, None)

    def _is_refused_by_links(
        self, path: bytes, waiting: Unsettled, found: FileStatus, entry: Entry | None, now: float
    ) -> bool:
        """Checks the file's hard links; refuses the file or queues it again if necessary. Returns whether it must not
        be read now."""
        verdict = self._link_check.check(path, found, entry, now - waiting.since)
        if verdict.waits:
            self.debounce.put_back(path, waiting, now + LINK_LOOK_S, found.stamp)
        elif verdict.refusal is not None:
            self._events.refused(path, verdict.refusal, found.stat)
        for other in verdict.names - {path}:
            before = self.ledger.get(other)
            if before is not None and before.refused is not None:
                self.debounce.put(other, time.monotonic(), complete=True)
        return verdict.waits or verdict.refusal is not None

    def _watch_target(self, path: bytes, found: FileStatus) -> None:
        if found.link and found.kind == "file" and found.inode is not None:
            self._watch_directory(path, found.inode, True)

    def _postpone_removal(self, path: bytes, due: float) -> None:
        entry = self.ledger.get(path)
        if entry is not None:
            self.pending_removals.put(path, due, entry.fingerprint.digest if entry.refused is None else None)

    def _mark_found(self, path: bytes) -> Entry | None:
        entry = self.ledger.get(path)
        if entry is not None:
            entry.scan = self._events.scan_number
            self.loss.found(path)
        return entry

    def _is_missing(self, path: bytes) -> bool:
        entry = self.ledger.get(path)
        return entry is not None and entry.scan != self._events.scan_number

    def _may_follow(self, path: bytes) -> bool:
        return self._rules.follows(path) or (self._follow and self._rules.enters(path))

    def _is_quiet(self, found: FileStatus) -> bool:
        return found.stat is not None and time.time() - found.stat.st_mtime >= self._settle_s
