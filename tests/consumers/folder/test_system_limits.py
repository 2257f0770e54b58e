"""With a full inotify queue, without free watches or instances, the folder is scanned or polled."""

import ctypes
import errno
import os
from pathlib import Path

import pytest
from watchdog.observers import inotify_c

from tests.consumers.folder.support import Folder


def _inotify_reader(folder: Folder) -> inotify_c.InotifyFD:
    watches = folder.source._watches
    assert watches is not None
    return watches._reader


@pytest.mark.slow
def test_inotify_queue_overflow_is_recovered_by_a_scan(watched: Folder) -> None:
    (watched.root / "gone").write_bytes(b"gone")
    (watched.root / "old").mkdir()
    (watched.root / "old" / "f").write_bytes(b"f")
    watched.scanned(settle_ms=1000)
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 200_000:
        pytest.skip("the kernel's queue is too long to fill in a test")
    before = watched.state().last_scan_at
    with _inotify_reader(watched)._lock:  # watchdog's thread cannot read, so the kernel's queue fills up
        with (watched.root / "x").open("wb") as one, (watched.root / "y").open("wb") as other:
            for _ in range(limit):
                os.pwrite(one.fileno(), b"1", 0)
                os.pwrite(other.fileno(), b"2", 0)
        (watched.root / "gone").unlink()
        (watched.root / "old").rename(watched.root / "new")
        (watched.root / "late").write_bytes(b"late")
        (watched.root / "made" / "meanwhile").mkdir(parents=True)
    watched.settled()
    assert watched.state().last_scan_at != before
    (watched.root / "made" / "meanwhile" / "g").write_bytes(b"g")
    (watched.root / "new" / "h").write_bytes(b"h")
    watched.settled()


def _refusing(number: int, after: int) -> object:
    """Returns an `inotify_add_watch` that fails after `after` watches."""
    real = inotify_c.inotify_add_watch
    calls = []

    def add(handle: int, path: bytes, mask: int) -> int:
        calls.append(path)
        if len(calls) <= after:
            return real(handle, path, mask)
        ctypes.set_errno(number)
        return -1

    return add


def test_without_a_watch_left_the_folder_is_polled_and_the_setting_named(
    watched: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (watched.root / "dir").mkdir()
    (watched.root / "dir" / "a").write_bytes(b"a")
    monkeypatch.setattr(inotify_c, "inotify_add_watch", _refusing(errno.ENOSPC, after=1))
    watched.scanned()
    assert watched.state().state == "polling"
    assert "fs.inotify.max_user_watches" in watched.state().detail
    (watched.root / "dir" / "b").write_bytes(b"b")
    watched.settled()


def test_without_a_watch_left_for_a_new_directory_the_folder_is_polled(
    watched: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.scanned()
    monkeypatch.setattr(inotify_c, "inotify_add_watch", _refusing(errno.ENOSPC, after=0))
    (watched.root / "dir").mkdir()
    (watched.root / "dir" / "a").write_bytes(b"a")
    watched.settled()
    assert watched.state().state == "polling"


def test_without_an_inotify_instance_left_the_folder_is_polled_and_the_setting_named(
    watched: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left() -> int:
        ctypes.set_errno(errno.EMFILE)
        return -1

    monkeypatch.setattr(inotify_c, "inotify_init", none_left)
    watched.scanned()
    assert watched.state().state == "polling"
    assert "fs.inotify.max_user_instances" in watched.state().detail
    (watched.root / "a").write_bytes(b"a")
    watched.settled()


def test_a_reader_thread_that_ended_is_replaced(watched: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumers.folder.folder_watcher.IDLE_CHECK_S", 0.05)
    watched.scanned()
    reader = _inotify_reader(watched)
    reader.stop()
    reader.join()
    (watched.root / "a").write_bytes(b"a")
    watched.settled()
