"""The folder source: threads around a follower, and what the daemon asks of them."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog

from consumers.folder.file_uri import path_of
from consumers.folder.follower import Follower
from consumers.folder.inotify_events import FileHint, apply_event
from consumers.folder.inotify_watches import Watches, WatchEvent, WatchLimitError
from consumers.folder.root import check_root
from consumers.folder.settings import FolderSettings, FolderState, StateName
from consumers.folder.walk import Inode
from consumers.types import FileEvent, Fingerprint

FOLDER_RETRY_DELAY_S = 1.0
"""How often a missing folder is looked for, and how long work rests after an unforeseen error."""

MAX_QUEUED_EVENTS = 200_000
"""Inotify events held while `emit` blocks; beyond, they are dropped and the folder is scanned instead."""

IDLE_CHECK_S = 5.0
"""How often an idle source makes sure that watchdog's reader thread is alive."""

MIN_POLL_PAUSE_RATIO = 10
"""A poll is followed by a pause of this many times what it took, so that a large folder does not fill a processor."""

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class _ScanRequest:
    """Somebody waits until all that a scan found is told."""

    on_done: Callable[[bool], None]
    """Called once, with whether it was so."""
    paths: set[bytes] = field(default_factory=set)


class FolderWatcher:
    """Follows one folder. `emit` and the callbacks are called on the source's own thread.

    `emit` may block: events then gather here, one a path. An event counts as told once
    `emit` has returned. `touched` is told of files whose content is as it was committed, under another mtime or inode: a
    position to store, nothing to read. `on_state` is called when the state changes, not for each file. Neither may raise.
    """

    def __init__(
        self,
        settings: FolderSettings,
        known: Mapping[str, Fingerprint],
        emit: Callable[[FileEvent], None],
        on_state: Callable[[FolderState], None] | None = None,
        touched: Callable[[str, Fingerprint], None] | None = None,
    ) -> None:
        """`known` is what was committed for this source. Raises ValueError for a glob that is none."""
        self._follower = Follower(settings, emit, touched or (lambda _uri, _fingerprint: None), self._enter)
        self._follower.load(known)
        self._settings = settings
        self._on_state = on_state
        self._inbox: deque[WatchEvent | FileHint] = deque()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"folder {settings.source}", daemon=True)
        self._watches: Watches | None = None
        self._overflowed = False
        self._trusted: Inode | None = None
        self._requests: deque[_ScanRequest] = deque()
        self._ending = threading.Lock()
        self._ended = False
        self._open_requests: list[_ScanRequest] = []
        self._scan_at = 0.0
        self._drives_at = 0.0
        self._name: StateName = "starting"
        self._detail = ""
        self._fallen_back = ""
        self._last_scan_at: float | None = None

    # What the daemon calls, from any thread.

    @property
    def state(self) -> FolderState:
        ledger, watches = self._follower.ledger, self._watches
        return FolderState(
            self._name,
            self._detail,
            files=len(ledger) - ledger.refused,
            pending=len(self._follower.debounce) + len(self._follower.pending_removals) + self._follower.reading,
            watches=len(watches) if watches else 0,
            last_scan_at=self._last_scan_at,
        )

    def start(self) -> None:
        """Scan, then follow, on threads of its own."""
        self._thread.start()

    def rescan(self, on_done: Callable[[bool], None] = lambda _complete: None) -> None:
        """Scan the whole folder; does not wait. `on_done` is called on the source's thread once every difference that the scan
        found has been told, with False where that will not be: the folder is missing, or the source stopped.

        Where the source had stopped before, it is called at once, on the caller's thread.
        """
        request = _ScanRequest(on_done)
        with self._ending:
            if not self._ended:
                self._requests.append(request)
                self._wake.set()
                return
        on_done(False)

    def recheck(self, uri: str) -> None:
        """Look at one file again and tell of it as if it were new, or as removed if it is gone."""
        self._put(FileHint(path_of(uri)))

    def committed(self, uri: str, fingerprint: Fingerprint | None) -> None:
        """What the daemon has committed; None where it dropped the file by itself, or could not read it for want of the
        drive that it is on: the file is told of anew.
        """
        self._put(FileHint(path_of(uri), committed=True, fingerprint=fingerprint))

    def stop(self, timeout: float = 5.0) -> None:
        """Stop following; waits for the thread at most `timeout` seconds, should it be inside `emit`."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    # The reader thread.

    def _push(self, event: WatchEvent) -> None:
        if event.wd == -1 or len(self._inbox) >= MAX_QUEUED_EVENTS:
            self._overflowed = True
        else:
            self._inbox.append(event)
        self._wake.set()

    # The worker thread.

    def _put(self, hint: FileHint) -> None:
        self._inbox.append(hint)
        self._wake.set()

    def _run(self) -> None:
        try:
            self._open()
            while not self._stopping.is_set():
                self._guarded_turn()
        finally:
            self._stopping.set()
            if self._watches is not None:
                self._watches.close()
            self._show("stopped")
            with self._ending:
                self._ended = True
            for request in (*self._open_requests, *self._requests):
                request.on_done(False)

    def _guarded_turn(self) -> None:
        try:
            self._turn()
        except WatchLimitError as error:
            self._fall_back(str(error))
        except Exception as error:  # whatever it is, a scan makes good for it; to end here would lose files in silence
            log.exception("folder_failed", source=self._settings.source, retry_s=FOLDER_RETRY_DELAY_S)
            self._show("error", f"{type(error).__name__}: {error}; scanning again")
            self._scan_at = 0.0
            self._stopping.wait(FOLDER_RETRY_DELAY_S)

    def _turn(self) -> None:
        self._wake.clear()
        self._drain()
        now = time.monotonic()
        follower = self._follower
        if follower.drives.absent and now >= self._drives_at:
            self._drives_at = now + FOLDER_RETRY_DELAY_S
            follower.check_drives()
        if self._requests or now >= self._scan_at:
            self._scan()
        elif follower.debounce.next_due() == 0:
            follower.settle_one(now)
        elif (due := follower.pending_removals.next_due()) is not None and due <= now:
            if check_root(follower.root, len(follower.ledger), self._trusted).look is None:
                self._scan_at = 0.0
            else:
                follower.remove_one(now)
                follower.settle_one(now)  # beside it, not after: removals may be held back by what waits to be read
        elif not follower.settle_one(now):
            self._rest(now)
        if self._name in ("watching", "polling"):
            self._show(self._name, self._shortcoming())
        self._close_tickets()

    def _rest(self, now: float) -> None:
        follower = self._follower
        dues = [follower.debounce.next_due(), follower.pending_removals.next_due(), self._scan_at]
        if follower.drives.absent:
            dues.append(self._drives_at)
        self._wake.wait(min(IDLE_CHECK_S, max(0.0, min(due for due in dues if due is not None) - now)))
        if self._watches is not None and not self._watches.alive and not self._stopping.is_set():
            log.error("inotify_ended", source=self._settings.source, hint="another reader is started")
            self._open()

    def _drain(self) -> None:
        if self._overflowed or self._follower.links_freed:
            if self._overflowed:
                log.warning("inotify_overflow", source=self._settings.source, hint="the folder is scanned")
                self._overflowed = False
                for _ in range(len(self._inbox)):  # in place: other threads append meanwhile
                    item = self._inbox.popleft()
                    if isinstance(item, FileHint):
                        self._inbox.append(item)
                if self._watches is not None:
                    self._watches.clear()
            self._scan_at = 0.0
        while self._inbox:
            if apply_event(self._inbox.popleft(), self._watches, self._follower):
                self._scan_at = 0.0

    def _scan(self) -> None:
        requests = list(self._requests)
        began = time.monotonic()
        follower = self._follower
        root = check_root(follower.root, len(follower.ledger), self._trusted)
        problem = root.problem
        if root.look is not None:
            if self._name not in ("watching", "polling"):
                self._show("scanning")
            if root.inode != self._trusted and self._watches is not None:
                self._watches.clear()
            refused = follower.scan(root.look)
            problem = refused.reason if refused is not None else ""
        for _ in requests:  # not before: a scan that ends in an error is still owed
            self._requests.popleft()
        if problem:
            self._lost(problem, requests)
            return
        self._trusted = root.inode
        self._last_scan_at = time.time()
        polling = self._watches is None
        now = time.monotonic()
        pause = max(self._settings.poll_interval_s, MIN_POLL_PAUSE_RATIO * (now - began))
        self._scan_at = now + pause if polling else float("inf")
        self._show("polling" if polling else "watching", self._shortcoming())
        waiting = {*follower.debounce, *follower.pending_removals}
        for request in requests:
            request.paths = set(waiting)
            self._open_requests.append(request)

    def _shortcoming(self) -> str:
        """What keeps a folder that is followed from being followed whole, as it was configured."""
        away = [
            f"no drive is mounted at {os.fsdecode(path)!r} any more: what is known of it is kept; mount it, or put any file "
            "there if its files are meant to be gone"
            for path in sorted(self._follower.drives.absent)
        ]
        return "; ".join([self._fallen_back, *away] if self._fallen_back else away)

    def _lost(self, problem: str, requests: list[_ScanRequest]) -> None:
        """The folder is not there: keep all that is known, wait until it comes back."""
        self._follower.debounce.clear()
        self._follower.pending_removals.clear()
        if self._watches is not None:
            self._watches.clear()
        self._scan_at = time.monotonic() + FOLDER_RETRY_DELAY_S
        for request in (*self._open_requests, *requests):
            request.on_done(False)
        self._open_requests.clear()
        self._show("missing", problem)

    def _close_tickets(self) -> None:
        follower = self._follower
        if self._open_requests:
            done = {
                path
                for path in follower.resolved
                if path not in follower.debounce and path not in follower.pending_removals
            }
            for request in self._open_requests:
                request.paths -= done
            for request in self._open_requests:
                if not request.paths:
                    request.on_done(True)
            self._open_requests = [request for request in self._open_requests if request.paths]
        follower.resolved.clear()

    # Watches.

    def _open(self) -> None:
        if self._watches is not None:
            self._watches.close()
            self._watches = None
        self._scan_at = 0.0
        if self._settings.polling:
            return
        try:
            self._watches = Watches(self._push)
        except WatchLimitError as error:
            self._fall_back(str(error))

    def _fall_back(self, reason: str) -> None:
        log.warning("folder_polled", source=self._settings.source, error=reason)
        if self._watches is not None:
            self._watches.close()
            self._watches = None
        self._follower.polling = True
        self._fallen_back = reason
        self._scan_at = 0.0

    def _enter(self, path: bytes, inode: Inode, link: bool) -> None:
        if self._watches is not None:
            self._watches.add(path, inode, link=link)

    def _show(self, name: StateName, detail: str = "") -> None:
        if (name, detail) == (self._name, self._detail):
            return
        self._name, self._detail = name, detail
        if self._on_state is not None:
            self._on_state(self.state)
