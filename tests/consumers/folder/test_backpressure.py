"""With a slow, failing or stopped daemon, events of one path are merged, and none is lost."""

import contextlib
import time
from threading import Event

import pytest
from watchdog.observers.inotify_c import InotifyConstants as In

from consumers.folder import FolderSettings, FolderWatcher
from consumers.folder.inotify import WatchEvent
from consumers.types import FileChanged, FileEvent, FileMoved
from tests.consumers.folder.support import PATIENCE_S, Daemon, Folder, digest, rescanned, until, uri


def test_queued_events_of_a_path_are_merged_while_the_daemon_is_busy(watched: Folder) -> None:
    free = Event()
    events: list[FileEvent] = []

    def emit(event: FileEvent) -> None:
        events.append(event)
        assert free.wait(PATIENCE_S)

    source = FolderWatcher(FolderSettings(watched.root, settle_ms=20), {}, emit)
    source.start()
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.callback(source.stop)
        until(lambda: source.state.state == "watching")
        (watched.root / "first").write_bytes(b"1")
        until(lambda: events)
        for number in range(50):
            (watched.root / "second").write_bytes(b"%d" % number)
        free.set()
        assert rescanned(source)
        assert len(events) == 2
        assert isinstance(events[1], FileChanged)
        assert events[1].fingerprint.digest == digest(b"49")


def test_a_file_that_was_just_saved_is_reported_before_a_backlog(watched: Folder) -> None:
    for number in range(100):
        (watched.root / f"backlog {number}").write_bytes(b"%d" % number)
    free = Event()
    events: list[FileEvent] = []

    def emit(event: FileEvent) -> None:
        events.append(event)
        assert free.wait(PATIENCE_S)

    source = FolderWatcher(FolderSettings(watched.root, settle_ms=20), {}, emit)
    source.start()
    until(lambda: events)
    (watched.root / "urgent").write_bytes(b"now")
    # The event CREATE comes first.
    until(lambda: any(isinstance(e, WatchEvent) and e.mask & In.IN_CLOSE_WRITE for e in source._inbox.copy()))
    free.set()
    assert rescanned(source)
    source.stop()
    assert len(events) == 101
    assert uri(watched.root / "urgent") in [event.uri for event in events[:3]]


def test_event_queue_overflow_is_recovered_by_a_scan(watched: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumers.folder.folder_watcher.MAX_QUEUED_EVENTS", 10)
    busy, free = Event(), Event()
    daemon = Daemon()

    def emit(event: FileEvent) -> None:
        busy.set()
        assert free.wait(PATIENCE_S)
        daemon.emit(event)

    source = FolderWatcher(FolderSettings(watched.root, settle_ms=20), {}, emit)
    source.start()
    until(lambda: source.state.state == "watching")
    (watched.root / "first").write_bytes(b"held up")
    until(busy.is_set)  # from here on nothing takes events out until `free`
    for number in range(100):
        (watched.root / f"{number}").mkdir()
        (watched.root / f"{number}" / "f").write_bytes(b"%d" % number)
    until(lambda: source._overflowed)
    free.set()
    until(lambda: daemon.digests == watched.on_disk())
    source.stop()


def test_moved_directory_is_reported_as_moves_to_a_slow_daemon(folder: Folder) -> None:
    (folder.root / "old").mkdir()
    for number in range(60):
        (folder.root / "old" / f"{number}").write_bytes(b"%d" % number)
    daemon = folder.scanned()
    daemon.forget_events()
    told = daemon.emit

    def slowly(event: FileEvent) -> None:
        time.sleep(0.01)
        told(event)

    folder.source._reconciler._events._emit = slowly
    (folder.root / "old").rename(folder.root / "new")
    folder.settled()
    assert {type(event) for event in daemon.events} == {FileMoved}


def test_file_under_constant_writes_is_reported_after_the_maximum_delay(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumers.folder.due_paths.MAX_UNSETTLED_S", 0.3)
    monkeypatch.setattr("consumers.folder.reconciler.MAX_UNSETTLED_S", 0.3)
    daemon = folder.scanned(settle_ms=5_000)
    with (folder.root / "log").open("ab", buffering=0) as file:

        def reported() -> bool:
            file.write(b"line\n")
            return bool(daemon.digests)

        until(reported)


@pytest.mark.slow
def test_an_event_whose_delivery_failed_is_delivered_again(watched: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumers.folder.folder_watcher.FOLDER_RETRY_DELAY_S", 0.02)
    daemon = Daemon()
    states: list[str] = []
    failures = [OSError("no room")] * 2

    def emit(event: FileEvent) -> None:
        if failures:
            raise failures.pop()
        daemon.emit(event)

    source = FolderWatcher(
        FolderSettings(watched.root), {}, emit, on_state=lambda state: states.append(f"{state.state} {state.detail}")
    )
    (watched.root / "a").write_bytes(b"a")
    source.start()
    until(lambda: daemon.digests == {uri(watched.root / "a"): digest(b"a")})
    source.stop()
    assert any(state.startswith("error OSError: no room") for state in states)


def test_stopping_the_watcher_ends_its_thread_and_refuses_rescans(folder: Folder) -> None:
    folder.scanned()
    source = folder.source
    source.stop()
    assert source.state.state == "stopped"
    assert not source._thread.is_alive()
    assert not rescanned(source)
    (folder.root / "a").write_bytes(b"a")
    assert folder.daemon.events == []
