"""What is not a plain readable file, a folder that is not there, and a system that runs out of something."""

import contextlib
import ctypes
import errno
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from watchdog.observers import inotify_c

from consumers.folder import FolderSettings, FolderWatcher
from consumers.folder.file_status import SwappedError, read_fingerprint
from consumers.types import FileChanged, FileEvent, FileMoved, FileRefused, FileRemoved
from tests.consumers.folder.support import PATIENCE_S, Daemon, Folder, digest, rescanned, until, uri

NOBODY = 65534


@pytest.fixture(params=["inotify", "polling"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Folder]:
    root = tmp_path / "drive"
    root.mkdir()
    folder = Folder(root, request.param == "polling")
    yield folder
    folder.stop()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Folder]:
    root = tmp_path / "drive"
    root.mkdir()
    folder = Folder(root, polling=False)
    yield folder
    folder.stop()


@pytest.fixture(params=["inotify", "polling"])
def unprivileged(request: pytest.FixtureRequest) -> Iterator[Folder]:
    """A folder followed by a user whom permissions bind: root reads everything."""
    root = Path(tempfile.mkdtemp(prefix="folder-"))
    root.chmod(0o777)
    folder = Folder(root, request.param == "polling")
    privileged = os.geteuid() == 0
    if privileged:
        os.seteuid(NOBODY)
    try:
        yield folder
        folder.stop()
    finally:
        if privileged:
            os.seteuid(0)
        subprocess.run(["chmod", "-R", "u+rwx", os.fspath(root)], check=True)
        shutil.rmtree(root)


# Rules


def test_include_and_exclude_decide_what_is_followed(folder: Folder) -> None:
    daemon = folder.scanned(include=("*.md", "/notes/**"), exclude=("drafts/", "*.old.md", "!.kept"))
    for name in (
        "a.md",
        "notes/x.txt",
        "sub/notes/x.txt",
        "sub/b.md",
        "drafts/c.md",
        "d.old.md",
        "E.MD",
        ".kept/f.md",
        ".g/h.md",
    ):
        (folder.root / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.root / name).write_bytes(name.encode())
    followed = {uri(folder.root / name) for name in ("a.md", "notes/x.txt", "sub/b.md", ".kept/f.md")}
    folder.rescan()
    assert set(daemon.digests) == followed
    assert len(daemon.events) == 4


def test_temporary_and_hidden_files_are_left_out_by_default(folder: Folder) -> None:
    for name in (
        ".git/HEAD",
        "~$a.docx",
        ".DS_Store",
        "a.swp",
        "b.part",
        "c.tmp",
        "d.crdownload",
        "e~",
        "#f#",
        ".x/y/z",
        "Thumbs.db",
    ):
        (folder.root / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.root / name).write_bytes(b"x")
    (folder.root / "a").write_bytes(b"x")
    assert set(folder.scanned().digests) == {uri(folder.root / "a")}
    (folder.root / ".git" / "later").write_bytes(b"x")
    (folder.root / "a").rename(folder.root / "a.tmp")
    folder.rescan()
    assert folder.daemon.digests == {}


def test_what_is_no_longer_followed_is_removed(folder: Folder) -> None:
    (folder.root / "a.md").write_bytes(b"a")
    (folder.root / "b.txt").write_bytes(b"b")
    folder.scanned()
    daemon = folder.restart(exclude=("*.txt",))
    assert [(type(event), event.uri) for event in daemon.events] == [(FileRemoved, uri(folder.root / "b.txt"))]


def test_a_pattern_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"include: '!' is not a glob"):
        FolderWatcher(FolderSettings(tmp_path, include=("!",)), {}, Daemon().emit)


# What is refused


def test_a_file_above_max_bytes_is_skipped_with_the_reason_until_it_shrinks(folder: Folder) -> None:
    path = folder.root / "big"
    path.write_bytes(b"x" * 101)
    daemon = folder.scanned(max_bytes=100)
    folder.rescan()
    (event,) = daemon.events
    assert isinstance(event, FileRefused)
    assert not event.failed
    assert "max_bytes (100)" in event.reason
    path.write_bytes(b"x" * 100)
    until(lambda: daemon.digests == {uri(path): digest(b"x" * 100)})
    path.write_bytes(b"x" * 101)
    until(lambda: uri(path) in daemon.refused)
    path.unlink()
    until(lambda: not daemon.refused)


def test_a_file_that_a_higher_limit_allows_is_told_after_a_restart(folder: Folder) -> None:
    path = folder.root / "big"
    path.write_bytes(b"x" * 101)
    daemon = folder.scanned(max_bytes=100)
    daemon.positions[uri(path)] = daemon.refused[uri(path)].fingerprint
    assert folder.restart(max_bytes=200).digests == folder.on_disk()


def test_fifos_and_sockets_are_skipped_and_never_opened(folder: Folder) -> None:
    os.mkfifo(folder.root / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(folder.root / "socket"))
        daemon = folder.scanned()
        os.mkfifo(folder.root / "later")
        until(lambda: len(daemon.refused) == 3)
        folder.rescan()
    assert len(daemon.events) == 3
    assert "a FIFO, not a regular file" in daemon.refused[uri(folder.root / "fifo")].reason
    assert "a socket, not a regular file" in daemon.refused[uri(folder.root / "socket")].reason
    assert not any(event.failed for event in daemon.refused.values())


def test_a_file_without_read_permission_fails_and_is_read_once_it_may_be(unprivileged: Folder) -> None:
    path = unprivileged.root / "secret"
    path.write_bytes(b"x")
    path.chmod(0)
    daemon = unprivileged.scanned()
    refused = daemon.refused[uri(path)]
    assert refused.failed
    assert "give hippod's user read access" in refused.reason
    path.chmod(0o600)
    unprivileged.rescan()
    assert daemon.digests == {uri(path): digest(b"x")}


def test_a_permission_given_while_the_daemon_was_down_is_noticed(unprivileged: Folder) -> None:
    path = unprivileged.root / "secret"
    path.write_bytes(b"x")
    path.chmod(0)
    daemon = unprivileged.scanned()
    unprivileged.stop()
    daemon.positions[uri(path)] = daemon.refused[uri(path)].fingerprint
    path.chmod(0o600)
    assert unprivileged.restart().digests == {uri(path): digest(b"x")}


def test_a_directory_that_cannot_be_listed_fails_and_keeps_what_is_known_below(unprivileged: Folder) -> None:
    directory = unprivileged.root / "dir"
    (directory / "sub").mkdir(parents=True)
    (directory / "sub" / "a").write_bytes(b"a")
    daemon = unprivileged.scanned()
    directory.chmod(0)
    unprivileged.rescan()
    assert "read access" in daemon.refused[uri(directory)].reason
    assert daemon.refused[uri(directory)].failed
    assert daemon.digests == {uri(directory / "sub/a"): digest(b"a")}
    directory.chmod(0o700)
    (directory / "b").write_bytes(b"b")
    unprivileged.rescan()
    assert daemon.refused == {}
    assert daemon.digests == unprivileged.on_disk()
    (directory / "sub" / "c").write_bytes(b"c")
    unprivileged.settled()


def test_a_path_longer_than_the_system_allows_is_refused_with_the_reason(folder: Folder) -> None:
    (folder.root / "short").write_bytes(b"x")
    handle = os.open(folder.root, os.O_RDONLY)
    name = "d" * 250
    for _ in range(20):
        os.mkdir(name, dir_fd=handle)
        below = os.open(name, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(os.open("leaf", os.O_WRONLY | os.O_CREAT, dir_fd=handle))
    os.close(handle)
    daemon = folder.scanned()
    assert daemon.digests == {uri(folder.root / "short"): digest(b"x")}
    (refused,) = daemon.refused.values()
    assert "longer than the system allows" in refused.reason
    subprocess.run(["rm", "-rf", os.fspath(folder.root / name)], check=True)
    folder.rescan()
    assert daemon.refused == {}


# Links


def test_links_are_skipped_once_each_unless_they_are_to_be_followed(folder: Folder) -> None:
    outside = folder.root.parent / "outside"
    outside.mkdir()
    (outside / "a").write_bytes(b"a")
    (folder.root / "to-dir").symlink_to(outside)
    daemon = folder.scanned()
    (folder.root / "to-file").symlink_to(outside / "a")
    (folder.root / "to-nothing").symlink_to("nowhere")
    until(lambda: len(daemon.refused) == 3)
    folder.rescan()
    assert len(daemon.events) == 3
    assert all("follow_symlinks = true" in event.reason and not event.failed for event in daemon.refused.values())


def test_followed_links_lead_to_files_and_directories_outside(folder: Folder) -> None:
    outside = folder.root.parent / "outside"
    (outside / "sub").mkdir(parents=True)
    (outside / "sub" / "a").write_bytes(b"a")
    (folder.root.parent / "file").write_bytes(b"file")
    daemon = folder.scanned(follow_symlinks=True)
    (folder.root / "dir").symlink_to(outside)
    (folder.root / "link").symlink_to(folder.root.parent / "file")
    wanted = {uri(folder.root / "dir/sub/a"): digest(b"a"), uri(folder.root / "link"): digest(b"file")}
    until(lambda: daemon.digests == wanted)
    (outside / "sub" / "b").write_bytes(b"b")
    (folder.root.parent / "file").write_bytes(b"edited")
    wanted |= {uri(folder.root / "dir/sub/b"): digest(b"b"), uri(folder.root / "link"): digest(b"edited")}
    until(lambda: daemon.digests == wanted)
    (folder.root / "dir").unlink()
    until(lambda: set(daemon.digests) == {uri(folder.root / "link")})
    (folder.root.parent / "file").unlink()
    until(lambda: uri(folder.root / "link") in daemon.refused)
    assert "a symbolic link to nothing" in daemon.refused[uri(folder.root / "link")].reason


def test_a_change_is_told_for_every_link_to_the_file(folder: Folder) -> None:
    target = folder.root.parent / "file"
    target.write_bytes(b"file")
    links = [folder.root / name for name in ("one", "two", "three")]
    for link in links:
        link.symlink_to(target)
    daemon = folder.scanned(follow_symlinks=True)
    for content in (b"edited", b"edited once more"):
        target.write_bytes(content)
        until(lambda content=content: daemon.digests == {uri(link): digest(content) for link in links})
    links.pop(0).unlink()
    until(lambda: len(daemon.digests) == 2)
    target.write_bytes(b"edited again")
    until(lambda: daemon.digests == {uri(link): digest(b"edited again") for link in links})


def test_links_in_circles_end(folder: Folder) -> None:
    (folder.root / "a" / "b").mkdir(parents=True)
    (folder.root / "a" / "f").write_bytes(b"f")
    (folder.root / "a" / "b" / "up").symlink_to("../..")
    (folder.root / "a" / "b" / "self").symlink_to("self")
    for one in ("x", "y", "z"):
        (folder.root / one).mkdir()
        for other in ("x", "y", "z"):
            (folder.root / one / f"to-{other}").symlink_to(f"../{other}")
    daemon = folder.scanned(follow_symlinks=True)
    assert daemon.digests == {uri(folder.root / "a/f"): digest(b"f")}
    assert len(daemon.refused) == 11
    assert "followed already" in daemon.refused[uri(folder.root / "a/b/up")].reason
    assert "circle" in daemon.refused[uri(folder.root / "a/b/self")].reason


def test_a_second_link_takes_over_when_the_first_is_gone(folder: Folder) -> None:
    outside = folder.root.parent / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"f")
    (folder.root / "one").symlink_to(outside)
    (folder.root / "two").symlink_to(outside)
    daemon = folder.scanned(follow_symlinks=True)
    assert set(daemon.digests) == {uri(folder.root / "one/f")}
    (folder.root / "one").unlink()
    until(lambda: set(daemon.digests) == {uri(folder.root / "two/f")})
    (outside / "g").write_bytes(b"g")
    until(lambda: set(daemon.digests) == {uri(folder.root / "two/f"), uri(folder.root / "two/g")})


def test_a_directory_replaced_by_a_link_takes_its_files_away(folder: Folder) -> None:
    (folder.root / "dir").mkdir()
    (folder.root / "dir" / "f").write_bytes(b"f")
    daemon = folder.scanned()
    (folder.root / "dir").rename(folder.root.parent / "elsewhere")
    (folder.root / "dir").symlink_to(folder.root.parent / "elsewhere")
    until(lambda: set(daemon.refused) == {uri(folder.root / "dir")} and not daemon.digests)


# The root


def test_a_missing_folder_is_waited_for(folder: Folder) -> None:
    folder.root.rmdir()
    daemon = folder.start()
    until(lambda: folder.state().state == "missing")
    assert "not there" in folder.state().detail
    assert not rescanned(folder.source)
    folder.root.mkdir()
    (folder.root / "a").write_bytes(b"a")
    folder.settled()
    assert [state.state for state in daemon.states][-1] in ("watching", "polling")


def test_a_folder_that_goes_away_keeps_its_files_and_resumes_when_it_is_back(folder: Folder) -> None:
    for name in ("a", "b", "c"):
        (folder.root / name).write_bytes(name.encode())
    daemon = folder.scanned()
    daemon.forget_events()
    folder.root.rename(folder.root.parent / "unmounted")
    until(lambda: folder.state().state == "missing")
    assert folder.state().files == 3
    (folder.root.parent / "unmounted" / "a").unlink()
    (folder.root.parent / "unmounted" / "b").write_bytes(b"changed meanwhile")
    (folder.root.parent / "unmounted").rename(folder.root)
    folder.settled()
    assert {type(event) for event in daemon.events} == {FileChanged, FileRemoved}
    assert len(daemon.events) == 2
    (folder.root / "d").write_bytes(b"d")
    folder.settled()


def test_an_empty_folder_where_files_were_expected_is_not_believed_after_a_restart(folder: Folder) -> None:
    (folder.root / "a").write_bytes(b"a")
    folder.scanned()
    folder.stop()
    (folder.root / "a").unlink()
    daemon = folder.start()
    until(lambda: folder.state().state == "missing")
    assert "put any file into the folder" in folder.state().detail
    assert len(daemon.digests) == 1
    (folder.root / ".anything").touch()
    folder.settled()
    assert daemon.digests == {}


def test_another_empty_directory_in_its_place_is_not_believed(folder: Folder) -> None:
    (folder.root / "a").write_bytes(b"a")
    daemon = folder.scanned()
    folder.root.rename(folder.root.parent / "unmounted")
    folder.root.mkdir()
    until(lambda: folder.state().state == "missing")
    assert len(daemon.digests) == 1
    folder.root.rmdir()
    (folder.root.parent / "unmounted").rename(folder.root)
    until(lambda: folder.state().state in ("watching", "polling"))
    folder.rescan()
    assert daemon.digests == folder.on_disk() != {}


def test_a_folder_that_is_cleared_while_it_is_followed_is_believed(folder: Folder) -> None:
    for name in ("a", "b"):
        (folder.root / name).write_bytes(name.encode())
    daemon = folder.scanned()
    for name in ("a", "b"):
        (folder.root / name).unlink()
    until(lambda: not daemon.digests)
    (folder.root / "c").write_bytes(b"c")
    folder.settled()


# Limits of the system


def _inotify_reader(folder: Folder) -> inotify_c.InotifyFD:
    watches = folder.source._watches
    assert watches is not None
    return watches._reader


def test_a_queue_that_overflowed_is_made_good_by_a_scan(watched: Folder) -> None:
    (watched.root / "gone").write_bytes(b"gone")
    (watched.root / "old").mkdir()
    (watched.root / "old" / "f").write_bytes(b"f")
    watched.scanned(settle_ms=1000)
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 200_000:
        pytest.skip("the kernel's queue is too long to fill in a test")
    before = watched.state().last_scan_at
    with _inotify_reader(watched)._lock:  # watchdog's thread cannot go on reading: the kernel's queue fills up
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
    """`inotify_add_watch` of a system that has no watch left after so many."""
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
    monkeypatch.setattr("consumers.folder.watcher.IDLE_CHECK_S", 0.05)
    watched.scanned()
    reader = _inotify_reader(watched)
    reader.stop()
    reader.join()
    (watched.root / "a").write_bytes(b"a")
    watched.settled()


# Back-pressure, errors, stopping


def test_while_the_daemon_is_busy_events_gather_one_a_path(watched: Folder) -> None:
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


def test_a_file_that_was_just_saved_is_told_before_a_backlog(watched: Folder) -> None:
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
    until(lambda: source._inbox)
    free.set()
    assert rescanned(source)
    source.stop()
    assert len(events) == 101
    assert uri(watched.root / "urgent") in [event.uri for event in events[:3]]


def test_events_beyond_what_is_held_are_made_good_by_a_scan(watched: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumers.folder.watcher.MAX_QUEUED_EVENTS", 10)
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
    until(busy.is_set)  # from here on nobody takes events out until `free`
    for number in range(100):
        (watched.root / f"{number}").mkdir()
        (watched.root / f"{number}" / "f").write_bytes(b"%d" % number)
    until(lambda: source._overflowed)
    free.set()
    until(lambda: daemon.digests == watched.on_disk())
    source.stop()


def test_a_moved_directory_is_moved_however_slow_the_daemon_is(folder: Folder) -> None:
    (folder.root / "old").mkdir()
    for number in range(60):
        (folder.root / "old" / f"{number}").write_bytes(b"%d" % number)
    daemon = folder.scanned()
    daemon.forget_events()
    told = daemon.emit

    def slowly(event: FileEvent) -> None:
        time.sleep(0.01)
        told(event)

    folder.source._follower._emit = slowly
    (folder.root / "old").rename(folder.root / "new")
    folder.settled()
    assert {type(event) for event in daemon.events} == {FileMoved}


def test_a_file_that_is_never_quiet_is_told_all_the_same(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumers.folder.debounce.MAX_UNSETTLED_S", 0.3)
    monkeypatch.setattr("consumers.folder.follower.MAX_UNSETTLED_S", 0.3)
    daemon = folder.scanned(settle_ms=5_000)
    with (folder.root / "log").open("ab", buffering=0) as file:

        def told() -> bool:
            file.write(b"line\n")
            return bool(daemon.digests)

        until(told)


def test_an_event_whose_delivery_failed_is_delivered_again(watched: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumers.folder.watcher.FOLDER_RETRY_DELAY_S", 0.02)
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


def test_stopping_ends_the_threads_and_whoever_waits(folder: Folder) -> None:
    folder.scanned()
    source = folder.source
    source.stop()
    assert source.state.state == "stopped"
    assert not source._thread.is_alive()
    assert not rescanned(source)
    (folder.root / "a").write_bytes(b"a")
    assert folder.daemon.events == []


# Drives


def test_an_unmounted_drive_keeps_its_files(folder: Folder) -> None:
    def mounted(*command: str) -> bool:
        return subprocess.run([*command, os.fspath(folder.root)], capture_output=True, check=False).returncode == 0

    if os.geteuid() != 0 or not mounted("mount", "-t", "tmpfs", "none"):
        pytest.skip("this user cannot mount a drive")
    try:
        (folder.root / "a").write_bytes(b"a")
        daemon = folder.scanned()
        assert mounted("umount", "-l")
        until(lambda: folder.state().state == "missing")
        assert list(daemon.digests) == [uri(folder.root / "a")]
        assert mounted("mount", "-t", "tmpfs", "none")
        (folder.root / "b").write_bytes(b"b")
        folder.settled()
    finally:
        folder.stop()
        mounted("umount", "-l")


@pytest.fixture
def nas(folder: Folder) -> Iterator[Path]:
    """A mount point in the folder; `_mounted` puts a drive there, with what was on it the last time."""
    point = folder.root / "nas"
    point.mkdir()
    if os.geteuid() != 0 or not _mount("-t", "tmpfs", "none", point):
        pytest.skip("this user cannot mount a drive")
    assert _unmount(point)
    drive = folder.root.parent / "the drive"
    drive.mkdir()
    assert _mount("-t", "tmpfs", "none", drive)
    yield point
    folder.stop()
    while _unmount(point):
        pass
    _unmount(drive)


def _mounted(point: Path) -> None:
    """Bound, so that it keeps what is on it; such a mount is taken away without an event, and a scan has to find that."""
    assert _mount("--bind", point.parent.parent / "the drive", point)


def _mount(*how: str | Path) -> bool:
    return subprocess.run(["mount", *how], capture_output=True, check=False).returncode == 0


def _unmount(point: Path) -> bool:
    return subprocess.run(["umount", "-l", point], capture_output=True, check=False).returncode == 0


def test_a_drive_below_the_folder_that_is_unmounted_keeps_its_files(folder: Folder, nas: Path) -> None:
    _mounted(nas)
    (folder.root / "own").write_bytes(b"own")
    (nas / "deep").mkdir()
    (nas / "deep" / "a").write_bytes(b"a")
    (nas / "b").write_bytes(b"b")
    daemon = folder.scanned()
    held = folder.on_disk()
    folder.commit()
    daemon.forget_events()
    assert _unmount(nas)
    folder.rescan()
    (folder.root / "own").unlink()
    until(lambda: uri(folder.root / "own") not in daemon.digests)
    until(lambda: "nas" in folder.state().detail)
    assert [type(event) for event in daemon.events] == [FileRemoved]
    assert set(daemon.digests) == set(held) - {uri(folder.root / "own")}
    _mounted(nas)
    until(lambda: not folder.state().detail)
    (nas / "b").unlink()
    (nas / "deep" / "c").write_bytes(b"c")
    folder.settled()
    assert set(daemon.digests) == {uri(nas / "deep/a"), uri(nas / "deep/c")}


def test_a_drive_below_the_folder_that_goes_for_good_keeps_its_files_too(folder: Folder, nas: Path) -> None:
    assert _mount("-t", "tmpfs", "none", nas)
    (nas / "deep").mkdir()
    (nas / "deep" / "a").write_bytes(b"a")
    daemon = folder.scanned()
    assert _unmount(nas)
    until(lambda: "nas" in folder.state().detail)
    (folder.root / "own").write_bytes(b"own")
    folder.rescan()
    assert set(daemon.digests) == {uri(folder.root / "own"), uri(nas / "deep/a")}


def test_what_waited_to_be_read_on_a_drive_below_the_folder_is_told_once_it_is_back(folder: Folder, nas: Path) -> None:
    _mounted(nas)
    (nas / "a").write_bytes(b"a")
    daemon = folder.scanned()
    daemon.forget_events()
    assert _unmount(nas)
    folder.source.committed(uri(nas / "a"), None)
    folder.rescan()
    until(lambda: "nas" in folder.state().detail)
    assert daemon.events == []
    _mounted(nas)
    until(lambda: [type(event) for event in daemon.events] == [FileChanged])


def test_an_empty_mount_point_that_was_filled_is_what_it_looks_like(folder: Folder, nas: Path) -> None:
    _mounted(nas)
    (nas / "a").write_bytes(b"a")
    daemon = folder.scanned()
    assert _unmount(nas)
    folder.rescan()
    until(lambda: "nas" in folder.state().detail)
    (nas / "b").write_bytes(b"b")
    folder.settled()
    assert list(daemon.digests) == [uri(nas / "b")]
    (nas / "b").unlink()
    until(lambda: not daemon.digests)


def test_a_drive_below_the_folder_that_is_cleared_is_believed(folder: Folder, nas: Path) -> None:
    _mounted(nas)
    (nas / "a").write_bytes(b"a")
    daemon = folder.scanned()
    (nas / "a").unlink()
    until(lambda: not daemon.digests)
    assert not folder.state().detail


def test_a_hard_link_to_a_file_outside_is_refused_like_a_symbolic_link(folder: Folder, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_bytes(b"not for this folder")
    (folder.root / "own").write_bytes(b"own")
    os.link(outside, folder.root / "linked")
    daemon = folder.scanned()
    assert set(daemon.digests) == {uri(folder.root / "own")}
    assert "a hard link" in daemon.refused[uri(folder.root / "linked")].reason
    # Swapped in under a name that was good: what was read before is taken away again.
    os.link(outside, folder.root / "swap.tmp")
    (folder.root / "swap.tmp").rename(folder.root / "own")
    until(lambda: uri(folder.root / "own") in daemon.refused, "the swapped link is refused")
    assert digest(b"not for this folder") not in daemon.digests.values()
    outside.unlink()
    (folder.root / "linked").unlink()
    folder.rescan()
    assert daemon.digests == {uri(folder.root / "own"): digest(b"not for this folder")}


def test_two_names_in_the_folder_are_two_documents_however_they_came(folder: Folder) -> None:
    (folder.root / "a").write_bytes(b"one file")
    os.link(folder.root / "a", folder.root / "b")
    daemon = folder.scanned()
    assert set(daemon.digests) == {uri(folder.root / "a"), uri(folder.root / "b")}
    assert daemon.refused == {}


def test_what_was_met_under_several_names_is_forgotten_with_them(folder: Folder) -> None:
    folder.scanned()
    for number in range(3):
        path = folder.root / f"{number}"
        path.write_bytes(b"one file")
        os.link(path, folder.root / f"{number} too")
    folder.rescan()
    names = folder.source._follower._hard_links
    assert len(names._met) == 3
    for path in folder.root.iterdir():
        path.unlink()
    (folder.root / "last").write_bytes(b"the folder is not empty")
    folder.rescan()
    assert not names._met


def test_linking_the_whole_drive_elsewhere_takes_nothing_out_of_the_memory(folder: Folder, tmp_path: Path) -> None:
    (folder.root / "a").write_bytes(b"kept")
    daemon = folder.scanned()
    os.link(folder.root / "a", tmp_path / "backup")
    os.utime(folder.root / "a")
    folder.rescan()
    daemon = folder.restart()
    assert daemon.digests == {uri(folder.root / "a"): digest(b"kept")}


def test_another_file_that_takes_the_name_after_the_look_is_not_vouched_for(tmp_path: Path) -> None:
    """A hard link to what lies outside comes just between the look at the names and the reading of the digest."""
    (tmp_path / "drive").mkdir()
    note, outside = tmp_path / "drive" / "note.txt", tmp_path / "secret.txt"
    outside.write_text("secret")
    note.write_text("good")
    seen = note.lstat()
    os.link(outside, tmp_path / "hard")
    (tmp_path / "hard").replace(note)
    with pytest.raises(SwappedError):
        read_fingerprint(os.fsencode(note), os.fsencode(tmp_path / "drive"), follow=False, seen=seen)
    linked = note.lstat()
    os.link(note, tmp_path / "third")
    with pytest.raises(SwappedError):
        read_fingerprint(os.fsencode(note), os.fsencode(tmp_path / "drive"), follow=False, seen=linked)
    found, steady = read_fingerprint(
        os.fsencode(note), os.fsencode(tmp_path / "drive"), follow=False, seen=note.lstat()
    )
    assert (found.inode, steady) == (note.stat().st_ino, True)
