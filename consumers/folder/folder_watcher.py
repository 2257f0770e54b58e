"""The folder source: a thread that watches, scans or polls one folder, and the methods that the daemon calls."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import structlog

from consumers.folder.file_uri import path_of
from consumers.folder.hardlinks import HardLinks
from consumers.folder.inotify import Watches, WatchEvent, WatchLimitError, apply_event
from consumers.folder.reconciler import Reconciler
from consumers.folder.settings import FolderSettings, FolderState, StateName
from consumers.folder.tree.file_status import FileStatus, Inode
from consumers.folder.tree.mounts import check_root
from consumers.types import FileEvent, Fingerprint

FOLDER_RETRY_DELAY_S = 1.0
"""Interval of checks for a missing folder, and pause after an unexpected error."""

MAX_QUEUED_EVENTS = 200_000
"""Maximum number of queued inotify events while `emit` blocks. If more arrive, the folder is scanned instead."""

EVENTS_DELAY_S = 0.3
"""Time to wait for the inotify events of files that a scan did not find."""

IDLE_CHECK_S = 5.0
"""Interval at which an idle source checks that watchdog's reader thread is alive."""

MIN_POLL_PAUSE_RATIO = 10
"""Minimum ratio of the pause after a poll to the poll's duration: polling a large folder must not use up a processor."""

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class _ScanRequest:
    """A request to call `on_done` once every difference that a scan found has been emitted."""

    on_done: Callable[[bool], None]
    """Called once, with the argument True if all differences were emitted, else False."""
    paths: set[bytes] = field(default_factory=set)


class FolderWatcher:
    """Follows one folder. Calls `emit` and the callbacks on its own thread.

    `emit` may block; changes are then queued, one per path. An event is delivered once `emit` has returned. `touched(uri,
    fingerprint)` reports a new stamp of a file whose content is committed; the daemon stores it without reading the file.
    `on_state` is called when the state changes, not for each file. The callbacks must not raise.
    """

    def __init__(
        self,
        settings: FolderSettings,
        known: Mapping[str, Fingerprint],
        emit: Callable[[FileEvent], None],
        on_state: Callable[[FolderState], None] | None = None,
        touched: Callable[[str, Fingerprint], None] | None = None,
        documents: Callable[[str], int] = lambda _uri: 1,
        hard_links: HardLinks | None = None,
    ) -> None:
        """`known` maps URIs to the fingerprints committed for this source. `documents(uri)` returns the number of documents in
        a file. If a file has names in several folders with the same `hard_links`, only one of the folders reads it.

        Raises ValueError for an invalid glob.
        """
        self._hard_links = hard_links or HardLinks()
        self._reconciler = Reconciler(
            settings,
            emit,
            touched or (lambda _uri, _fingerprint: None),
            self._watch_directory,
            documents,
            self._hard_links,
        )
        self._hard_links.join(settings.root, lambda path: self._call(partial(self._reconciler.metadata_changed, path)))
        self._reconciler.load(known)
        self._settings = settings
        self._on_state = on_state
        self._inbox: deque[WatchEvent | Callable[[], None]] = deque()
        """Events, and calls of the reconciler that other threads request."""
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"folder {settings.source}", daemon=True)
        self._watches: Watches | None = None
        self._overflowed = False
        self._trusted_root: Inode | None = None
        self._loss_logged = (0, 0)
        self._requests: deque[_ScanRequest] = deque()
        self._end_lock = threading.Lock()
        self._ended = False
        self._open_requests: list[_ScanRequest] = []
        self._next_scan = 0.0
        self._next_drive_check = 0.0
        self._state_name: StateName = "starting"
        self._detail = ""
        self._polling_reason = ""
        self._last_scan_at: float | None = None

    # The daemon calls these methods, on any thread.

    @property
    def state(self) -> FolderState:
        ledger, watches = self._reconciler.ledger, self._watches
        return FolderState(
            self._state_name,
            self._detail,
            files=len(ledger) - ledger.refused,
            pending=len(self._reconciler.debounce) + len(self._reconciler.pending_removals) + self._reconciler.reading,
            watches=len(watches) if watches else 0,
            last_scan_at=self._last_scan_at,
            unconfirmed=self._reconciler.loss.unconfirmed,
            newly_excluded=self._reconciler.loss.excluded,
            excluded=self._reconciler.excluded(),
        )

    @property
    def awaits_first_scan(self) -> bool:
        """Whether the first comparison with the memory is due. False if the folder cannot be scanned now."""
        return self._last_scan_at is None and self._state_name in ("starting", "scanning")

    def start(self) -> None:
        """Starts the thread, which scans the folder and then follows it."""
        self._thread.start()

    def rescan(self, on_done: Callable[[bool], None] = lambda _complete: None) -> None:
        """Requests a scan of the whole folder and returns at once.

        `on_done` is called on the source's thread: with True once every difference has been emitted, with False if the
        folder is missing or the source stops. If the source has already stopped, `on_done` is called at once, on the
        caller's thread.
        """
        request = _ScanRequest(on_done)
        with self._end_lock:
            if not self._ended:
                self._requests.append(request)
                self._wake.set()
                return
        on_done(False)

    def confirm(self) -> int:
        """Confirms the pending removals: documents that a scan did not find, and documents that a new default exclusion
        leaves out.

        Returns the number of these documents.
        """
        unconfirmed = self.state.unconfirmed
        if unconfirmed:
            self._reconciler.loss.confirm()
            self.rescan()
        return unconfirmed

    def recheck(self, uri: str) -> None:
        """Queues one file to be read again as if it were new, or removed if it is gone."""
        self._call(partial(self._reconciler.recheck, path_of(uri)))

    def committed(self, uri: str, fingerprint: Fingerprint | None) -> None:
        """Tells the source which content of the file the daemon has committed.

        If `fingerprint` is None, the daemon dropped the file, or could not read it because its drive was unmounted; the file is
        then reported again.
        """
        self._call(partial(self._reconciler.committed, path_of(uri), fingerprint))

    def stop(self, timeout: float = 5.0) -> None:
        """Stops following the folder. Waits at most `timeout` seconds for the thread, which may be inside `emit`."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    # Runs on watchdog's reader thread.

    def _put_event(self, event: WatchEvent) -> None:
        if event.wd == -1 or len(self._inbox) >= MAX_QUEUED_EVENTS:
            self._overflowed = True
        else:
            self._inbox.append(event)
        self._wake.set()

    # The other methods run on the source's thread; any thread may call `_call`.

    def _call(self, method: Callable[[], None]) -> None:
        self._inbox.append(method)
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
            self._set_state("stopped")
            with self._end_lock:
                self._ended = True
            for request in (*self._open_requests, *self._requests):
                request.on_done(False)

    def _guarded_turn(self) -> None:
        try:
            self._turn()
        except WatchLimitError as error:
            self._fall_back_to_polling(str(error))
        except Exception as error:  # the next scan repairs the state; an ending thread would lose files silently
            log.exception("folder_failed", source=self._settings.source, retry_s=FOLDER_RETRY_DELAY_S)
            self._set_state("error", f"{type(error).__name__}: {error}; scanning again")
            self._next_scan = 0.0
            self._stopping.wait(FOLDER_RETRY_DELAY_S)

    def _turn(self) -> None:
        self._wake.clear()
        self._drain()
        now = time.monotonic()
        reconciler = self._reconciler
        if reconciler.drives.unmounted and now >= self._next_drive_check:
            self._next_drive_check = now + FOLDER_RETRY_DELAY_S
            reconciler.check_drives()
        if self._requests or now >= self._next_scan:
            self._scan()
        elif reconciler.debounce.has_complete:
            reconciler.settle_one(now)
        elif (due := reconciler.pending_removals.next_due()) is not None and due <= now:
            if self._check_root().refusal is not None:
                self._next_scan = 0.0
            else:
                reconciler.remove_one(now)
                reconciler.settle_one(now)  # in the same turn, because the removal may wait for an unread file
        elif not reconciler.settle_one(now):
            self._rest(now)
        if self._state_name in ("watching", "polling"):
            self._set_state(self._state_name, self._incomplete_reason())
        self._finish_requests()

    def _rest(self, now: float) -> None:
        reconciler = self._reconciler
        dues = [reconciler.debounce.next_due(), reconciler.pending_removals.next_due(), self._next_scan]
        if reconciler.drives.unmounted:
            dues.append(self._next_drive_check)
        self._wake.wait(min(IDLE_CHECK_S, max(0.0, min(due for due in dues if due is not None) - now)))
        if self._watches is not None and not self._watches.alive and not self._stopping.is_set():
            log.error("inotify_ended", source=self._settings.source, hint="another reader is started")
            self._open()

    def _drain(self) -> None:
        if self._overflowed or self._reconciler.links_need_rescan:
            if self._overflowed:
                log.warning("inotify_overflow", source=self._settings.source, hint="the folder is scanned")
                self._overflowed = False
                for _ in range(len(self._inbox)):  # in place, because other threads append concurrently
                    item = self._inbox.popleft()
                    if not isinstance(item, WatchEvent):
                        self._inbox.append(item)
                if self._watches is not None:
                    self._watches.clear()
            self._next_scan = 0.0
        while self._inbox:
            item = self._inbox.popleft()
            if not isinstance(item, WatchEvent):
                item()
            elif self._watches is not None and apply_event(item, self._watches, self._reconciler):
                self._next_scan = 0.0

    def _check_root(self) -> FileStatus:
        return check_root(self._reconciler.root, len(self._reconciler.ledger), self._trusted_root)

    def _scan(self) -> None:
        requests = list(self._requests)
        began = time.monotonic()
        reconciler = self._reconciler
        root = self._check_root()
        refusal = root.refusal
        if refusal is None:
            if self._state_name not in ("watching", "polling"):
                self._set_state("scanning")
            if root.inode != self._trusted_root and self._watches is not None:
                self._watches.clear()
            refusal = reconciler.scan(root)
        for _ in requests:  # only now, because after a failed scan the requests must still be open
            self._requests.popleft()
        if refusal is not None:
            self._set_missing(refusal.reason, requests)
            return
        had_scanned, self._trusted_root = self._trusted_root is not None, root.inode
        self._last_scan_at = time.time()
        self._hard_links.scanned(reconciler.root)
        polling = self._watches is None
        now = time.monotonic()
        pause = max(self._settings.poll_interval_s, MIN_POLL_PAUSE_RATIO * (now - began))
        self._next_scan = now + pause if polling else float("inf")
        self._settle_losses(had_scanned)
        self._set_state("polling" if polling else "watching", self._incomplete_reason())
        waiting = {*reconciler.debounce, *reconciler.pending_removals}
        for request in requests:
            request.paths = set(waiting)
            self._open_requests.append(request)

    def _settle_losses(self, had_scanned: bool) -> None:
        """Logs the removals that wait for confirmation.

        A deletion in a watched folder also causes an event, which needs no confirmation. The method waits for such events
        first.
        """
        loss = self._reconciler.loss
        if loss.missing and self._watches is not None and had_scanned:
            self._stopping.wait(EVENTS_DELAY_S)
            self._drain()
        missing, excluded = loss.missing, loss.excluded
        waiting = (missing, sum(excluded.values()))
        if missing and missing != self._loss_logged[0]:
            log.warning("removals_need_confirmation", source=self._settings.source, documents=missing, of=loss.known)
        if excluded and waiting[1] != self._loss_logged[1]:
            log.warning(
                "exclusions_need_confirmation", source=self._settings.source, documents=waiting[1], reasons=excluded
            )
        self._loss_logged = waiting

    def _incomplete_reason(self) -> str:
        """Returns why the folder is followed incompletely or not as configured; "" without a reason."""
        reasons = [
            f"no drive is mounted at {os.fsdecode(path)!r} any more: its documents are kept; mount it, or put any file "
            "there if the files are really gone"
            for path in sorted(self._reconciler.drives.unmounted)
        ]
        reasons += self._reconciler.loss.reasons(self._settings.source)
        return "; ".join([self._polling_reason, *reasons] if self._polling_reason else reasons)

    def _set_missing(self, problem: str, requests: list[_ScanRequest]) -> None:
        """Handles a missing folder: keeps the ledger, clears the queues and retries after `FOLDER_RETRY_DELAY_S`."""
        self._hard_links.scanned(self._reconciler.root)
        self._reconciler.debounce.clear()
        self._reconciler.pending_removals.clear()
        self._reconciler.loss.withdraw_confirmation()
        if self._watches is not None:
            self._watches.clear()
        self._next_scan = time.monotonic() + FOLDER_RETRY_DELAY_S
        for request in (*self._open_requests, *requests):
            request.on_done(False)
        self._open_requests.clear()
        self._set_state("missing", problem)

    def _finish_requests(self) -> None:
        queue, removals = self._reconciler.debounce, self._reconciler.pending_removals
        if self._open_requests:
            done = {path for path in (*queue.left, *removals.left) if path not in queue and path not in removals}
            for request in self._open_requests:
                request.paths -= done
                if not request.paths:
                    request.on_done(True)
            self._open_requests = [request for request in self._open_requests if request.paths]
        queue.left.clear()
        removals.left.clear()

    # Inotify watches.

    def _open(self) -> None:
        if self._watches is not None:
            self._watches.close()
            self._watches = None
        self._next_scan = 0.0
        if self._settings.polling:
            return
        try:
            self._watches = Watches(self._put_event)
        except WatchLimitError as error:
            self._fall_back_to_polling(str(error))

    def _fall_back_to_polling(self, reason: str) -> None:
        log.warning("folder_polled", source=self._settings.source, error=reason)
        if self._watches is not None:
            self._watches.close()
            self._watches = None
        self._reconciler.polling = True
        self._polling_reason = reason
        self._next_scan = 0.0

    def _watch_directory(self, path: bytes, inode: Inode, link: bool) -> None:
        if self._watches is not None:
            self._watches.add(path, inode, link=link)

    def _set_state(self, name: StateName, detail: str = "") -> None:
        if (name, detail) == (self._state_name, self._detail):
            return
        self._state_name, self._detail = name, detail
        if self._on_state is not None:
            self._on_state(self.state)
