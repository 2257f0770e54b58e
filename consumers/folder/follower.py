"""Turns hints about paths into file events, by looking at what is there. One thread owns it.

An inotify event, a poll or a scan only says where to look; what is told follows from the difference between the file
and the ledger. So events that are lost, late, doubled or out of order cost time, never truth.
"""

import os
import time
from collections.abc import Callable, Mapping

from consumers.failures import FailureCode
from consumers.folder.debounce import MAX_UNSETTLED_S, DebounceQueue, WaitingPath
from consumers.folder.file_status import FileStatus, SwappedError, read_fingerprint, refused_status
from consumers.folder.file_uri import file_uri, path_of
from consumers.folder.globs import GlobRules
from consumers.folder.hardlinks import LINKED_ELSEWHERE, HardLinks
from consumers.folder.ledger import Entry, Ledger
from consumers.folder.pending_removals import PendingRemovals
from consumers.folder.settings import FolderSettings
from consumers.folder.walk import Inode, Walker
from consumers.types import FileChanged, FileEvent, FileMoved, FileRefused, FileRemoved, Fingerprint

REMOVAL_GRACE_S = 0.1
"""How long a vanished file may take to come back (an editor's save) or to turn up elsewhere before it is removed."""

REMOVAL_EXTENSION_S = 1.0
"""How long it may take longer, each time, while a file that looks the same has not been read yet."""

COARSEST_MTIME_NS = 2_000_000_000
"""The coarsest clock that a file system in use stamps files with: two seconds."""


class Follower:
    """The state of one followed tree. What a file is like never raises; `emit` may block, `enter` may raise."""

    def __init__(
        self,
        settings: FolderSettings,
        emit: Callable[[FileEvent], None],
        touched: Callable[[str, Fingerprint], None],
        enter: Callable[[bytes, Inode, bool], None],
    ) -> None:
        self.root = settings.root
        self.ledger = Ledger()
        self.debounce = DebounceQueue()
        self.pending_removals = PendingRemovals()
        self.polling = settings.polling
        self.resolved: list[bytes] = []
        """Paths that were looked at since somebody emptied this list; one may have been put off all the same."""
        self.reading = False
        """Whether a file is being looked at that waits no more and is not told of yet."""
        self.links_freed = False
        """A link left out because its target was followed under another name may be the only one now: scan again."""
        self._source = settings.source
        self._follow = settings.follow_symlinks
        self._settle_s = settings.settle_ms / 1000
        self._emit = emit
        self._touched = touched
        self._enter = enter
        self._rules = GlobRules(self.root, settings.include, settings.exclude)
        self._walker = Walker(self._rules, follow=self._follow, max_bytes=settings.max_bytes, enter=enter)
        self.drives = self._walker.drives
        self._scan = 0
        self._hard_links = HardLinks()

    def load(self, known: Mapping[str, Fingerprint]) -> None:
        """Take over what was committed before. What is not below the root is told as removed."""
        inside = self.root.rstrip(b"/") + b"/"
        for uri, fingerprint in known.items():
            path = path_of(uri)
            self.ledger.put(path, Entry(fingerprint, committed=True))
            if not path.startswith(inside):
                self.pending_removals.put(path, 0, None)

    # Hints: where to look.

    def saved(self, path: bytes) -> None:
        """Somebody closed the file after writing, or moved it into place: it is complete."""
        if self._may_follow(path):
            self.debounce.put(path, time.monotonic(), 0, content=True)

    def written(self, path: bytes) -> None:
        """The file is new or being written: it must be quiet for a while."""
        if self._may_follow(path):
            now = time.monotonic()
            self.debounce.put(path, now, now + self._settle_s, content=True)

    def touched(self, path: bytes) -> None:
        """Something about the path changed, hardly its content."""
        if self._may_follow(path) and path not in self.debounce:
            now = time.monotonic()
            self.debounce.put(path, now, now + self._settle_s)

    def appeared(self, path: bytes) -> None:
        """A directory is new, was moved here, or may be listed now."""
        if self._rules.enters(path):
            found = self._walker.status_of(path)
            if found.kind == "directory":
                self._compare(path, found)
            else:
                self.touched(path)

    def gone(self, path: bytes) -> None:
        """A file, or a directory with all that is below it, was deleted or moved away."""
        due = time.monotonic() + REMOVAL_GRACE_S
        for known in self.drives.there(self.ledger.below(path)):
            self._vanish(known, due)
        self.links_freed |= self._walker.leave(path)

    def recheck(self, path: bytes) -> None:
        """Tell of the file as if it were new."""
        entry = self.ledger.get(path)
        if entry is not None:
            self.ledger.put(path, Entry(entry.fingerprint, refused="", committed=entry.committed))
        self.debounce.put(path, time.monotonic(), 0)

    def committed(self, path: bytes, fingerprint: Fingerprint | None) -> None:
        """What the daemon has committed. None forgets a file that was; one that is only told of is told once more."""
        entry = self.ledger.get(path)
        if entry is None:
            return
        if fingerprint is not None:
            entry.committed = entry.fingerprint.digest == fingerprint.digest
        elif entry.committed:
            self.ledger.pop(path)
        elif entry.refused is None:
            entry.again = True
            now = time.monotonic()
            self.debounce.put(path, now, now)

    # Work: look, and tell.

    def scan(self, top: FileStatus) -> FileStatus | None:
        """Compare the whole tree with the ledger; `top` is its root. Returns why, if the root could not be listed."""
        self.links_freed = False
        self._walker.forget()
        self._hard_links.forget()
        return self._compare(self.root, top)

    def check_drives(self) -> None:
        """Compare those that were away and are back: no event tells of that."""
        for path in self.drives.back():
            found = self._walker.status_of(path)
            if found.kind == "directory":
                self._compare(path, found)
            else:
                self.gone(path)

    def settle_one(self, now: float) -> bool:
        """Tell of one path that is due; returns whether there was one."""
        due = self.debounce.pop_due(now)
        if due is None:
            return False
        self.reading = True
        try:
            self._settle(*due, now)
        finally:
            self.reading = False
        return True

    def _settle(self, path: bytes, waiting: WaitingPath, now: float) -> None:
        self.resolved.append(path)
        found = self._walker.status_of(path)
        if found.kind == "gone" or not self._reachable(path):
            self.gone(path)
        elif found.kind == "directory":
            if self._rules.enters(path):
                self._compare(path, found)
        elif not self._rules.follows(path):
            self.gone(path)
        elif found.kind == "refused":
            self._refuse(path, found)
        else:
            self._file(path, waiting, found, now)

    def remove_one(self, now: float) -> None:
        """Tell that one vanished path is gone, if its grace is over."""
        path = self.pending_removals.pop_due(now)
        if path is None:
            return
        self.resolved.append(path)
        entry = self.ledger.get(path)
        found = self._walker.status_of(path)
        here = found.kind == "file" or (found.kind == "refused" and (found.failed or not found.unknown))
        if entry is None:
            pass
        elif here and self._rules.follows(path) and self._reachable(path):
            self.debounce.put(path, now, now, stamp=found.stamp)
        elif self.debounce.has_stamp(entry.fingerprint.stamp):
            self._vanish(
                path, now + REMOVAL_EXTENSION_S
            )  # a file that looks like it waits to be read: it may have moved there
        elif not self.drives.away(path):
            self._remove(path)

    # How.

    def _compare(self, top: bytes, first: FileStatus) -> FileStatus | None:
        """Find where the tree at `top` and the ledger differ, and have that looked at."""
        self._scan += 1
        news: list[tuple[bytes, FileStatus]] = []
        for path, found in self._walker.walk(top, first):
            if found.unknown:  # what is below it, and itself, may be there still
                for known in self.ledger.below(path):
                    self._mark(known)
                if path == self.root:
                    return found
            self._hard_links.meet(path, found.stat)
            entry = self._mark(path)
            if entry is not None and entry.refused is None and (found.unknown or entry.matches(found)):
                self.pending_removals.discard(path)
                self.resolved.append(path)
            else:
                news.append((path, found))
            self._watch_target(path, found)
        lost = self.drives.there(path for path in self.ledger.below(top) if self._missed(path))
        self._look_at(news, lost)
        return None

    def _look_at(self, news: list[tuple[bytes, FileStatus]], lost: list[bytes]) -> None:
        now = time.monotonic()
        stamps = {entry.fingerprint.stamp for path in lost if (entry := self.ledger.get(path)) is not None}
        wait = REMOVAL_GRACE_S
        for path in lost:
            entry = self.ledger.get(path)
            if entry is not None and entry.refused is not None and self._walker.status_of(path).kind == "directory":
                self._remove(path)  # a directory or a link that was left out and was entered now: first of all
        for path, found in news:
            if found.kind == "refused":  # at once, as only the walk knows of a directory or a link why
                self._refuse(path, found)
                continue
            if path in self.debounce:
                continue
            stamp = found.stamp
            settled = stamp in stamps or (not self.polling and self._quiet(found))
            if not settled:
                wait = self._settle_s + REMOVAL_GRACE_S
            self.debounce.put(path, now, now if settled else now + self._settle_s, stamp=stamp)
        for path in lost:
            self._vanish(path, now + wait)

    def _file(self, path: bytes, waiting: WaitingPath, found: FileStatus, now: float) -> None:
        entry = self.ledger.get(path)
        self.pending_removals.discard(path)
        self._watch_target(path, found)
        elsewhere = self._linked_elsewhere(path, found, entry)
        if elsewhere or (entry is not None and not waiting.content and entry.matches(found)):
            return
        overdue = now - waiting.since >= MAX_UNSETTLED_S
        stamp = found.stamp
        if not (waiting.due == 0 or overdue or waiting.stamp == stamp or (not self.polling and self._quiet(found))):
            self.debounce.put_back(path, waiting, now + self._settle_s, stamp)
            return
        try:
            fingerprint, steady = read_fingerprint(path, self.root, follow=self._follow, seen=found.stat)
        except SwappedError:
            self.debounce.put_back(path, waiting, now + self._settle_s, None)
            return
        except FileNotFoundError:
            self.gone(path)
            return
        except OSError as error:
            self._refuse(path, refused_status(error), found.stat)
            return
        if steady or overdue:
            self._tell(path, fingerprint, entry)
        else:
            self.debounce.put_back(path, waiting, now + self._settle_s, None)

    def _linked_elsewhere(self, path: bytes, found: FileStatus, entry: Entry | None) -> bool:
        """Refuses a file with a name outside of the folder, as a symbolic link out of it is refused.

        A file that was told of already stays: somebody who links a whole drive elsewhere (a backup) must not empty the
        memory. `consumers.openat` has the other half, for what is swapped in after this look.
        """
        assert found.stat is not None
        if self._follow:
            return False
        if self._hard_links.elsewhere(path, found.stat, self.ledger.with_inode(found.stat.st_ino)):
            known = entry is not None and entry.refused is None and entry.fingerprint.inode == found.stat.st_ino
            if not known:
                reason = LINKED_ELSEWHERE.format(count=found.stat.st_nlink)
                self._refuse(path, FileStatus("refused", found.stat, reason=reason, code=FailureCode.LINK))
            return not known
        for other in self._hard_links.others(path, found.stat):
            before = self.ledger.get(other)
            if before is not None and before.refused is not None:
                self.debounce.put(other, time.monotonic(), 0)
        return False

    def _tell(self, path: bytes, fingerprint: Fingerprint, entry: Entry | None) -> None:
        """Tell of a file that has settled.

        The same content under another mtime or inode is a mere position, but only once that content is committed: a position
        that came before it would have the file count as read after a restart. Until then the file is told again.
        """
        uri = file_uri(path)
        racy = abs(time.time_ns() - fingerprint.mtime_ns) < COARSEST_MTIME_NS
        committed = False
        same = entry is not None and entry.taken_in and entry.fingerprint.digest == fingerprint.digest
        if entry is not None and same and (entry.committed or entry.fingerprint == fingerprint):
            if entry.fingerprint != fingerprint:
                self._touched(uri, fingerprint)
            committed = entry.committed
        elif entry is None and (old := self._moved_from(fingerprint)) is not None:
            self._emit(FileMoved(file_uri(old), uri, path, self._source, fingerprint))
            self.ledger.pop(old)
            self.pending_removals.discard(old)
            self.resolved.append(old)
        else:
            self._emit(FileChanged(uri, path, self._source, fingerprint))
        self.ledger.put(path, Entry(fingerprint, committed=committed, racy=racy, scan=self._scan))

    def _moved_from(self, fingerprint: Fingerprint) -> bytes | None:
        """The vanished file with this content; the one with this inode first."""
        best: bytes | None = None
        for path in self.pending_removals.with_digest(fingerprint.digest or ""):
            entry = self.ledger.get(path)
            if entry is None or entry.again or (self._walker.status_of(path).kind != "gone" and self._reachable(path)):
                continue
            if entry.fingerprint.inode == fingerprint.inode:
                return path
            best = best or path
        return best

    def _refuse(self, path: bytes, found: FileStatus, stat: os.stat_result | None = None) -> None:
        self.pending_removals.discard(path)
        entry = self.ledger.get(path)
        if entry is not None and entry.refused == found.reason:
            return
        stat = stat or found.stat
        # Without a digest: what was never read must be looked at again after a restart, whatever its size and mtime.
        fingerprint = Fingerprint(stat.st_size, stat.st_mtime_ns, stat.st_ino) if stat else Fingerprint(0, 0, 0)
        told = fingerprint if stat else None
        self._emit(FileRefused(file_uri(path), self._source, found.reason, found.failed, found.code, told))
        self.ledger.put(path, Entry(fingerprint, refused=found.reason, scan=self._scan))

    def _watch_target(self, path: bytes, found: FileStatus) -> None:
        if found.link and found.kind == "file" and found.stat is not None:
            self._enter(path, (found.stat.st_dev, found.stat.st_ino), True)

    def _remove(self, path: bytes) -> None:
        self._emit(FileRemoved(file_uri(path), self._source))
        self.ledger.pop(path)

    def _vanish(self, path: bytes, due: float) -> None:
        entry = self.ledger.get(path)
        if entry is not None:
            self.pending_removals.put(path, due, entry.fingerprint.digest if entry.refused is None else None)

    def _mark(self, path: bytes) -> Entry | None:
        entry = self.ledger.get(path)
        if entry is not None:
            entry.scan = self._scan
        return entry

    def _missed(self, path: bytes) -> bool:
        entry = self.ledger.get(path)
        return entry is not None and entry.scan != self._scan

    def _may_follow(self, path: bytes) -> bool:
        return self._rules.follows(path) or (self._follow and self._rules.enters(path))

    def _quiet(self, found: FileStatus) -> bool:
        return found.stat is not None and time.time() - found.stat.st_mtime >= self._settle_s

    def _reachable(self, path: bytes) -> bool:
        """Whether the walk would come to `path`: no directory above it is a link that is not followed."""
        inside = len(self.root.rstrip(b"/")) + 1
        if not path.startswith(self.root.rstrip(b"/") + b"/"):
            return False
        cut = path.find(b"/", inside)
        while cut != -1:
            above = path[:cut]
            found = self._walker.status_of(above)
            if found.kind != "directory":
                return found.unknown
            entry = self.ledger.get(above)
            if found.link and entry is not None and entry.refused is not None:
                return False
            cut = path.find(b"/", cut + 1)
        return True
