"""Paths that are not plain readable files are refused with the reason, and parsed once they become readable."""

import os
import socket
import subprocess

import pytest

from consumers.types import FileChanged
from tests.consumers.folder.support import Folder, digest, until, uri


def test_file_above_max_bytes_is_tracked_by_its_beginning(folder: Folder) -> None:
    """A log that grows beyond the limit keeps its parsed beginning; a changed beginning is parsed again."""
    path = folder.root / "log"
    path.write_bytes(b"x" * 100)
    daemon = folder.scanned(max_bytes=100)
    assert daemon.digests == {uri(path): digest(b"x" * 100)}
    path.write_bytes(b"x" * 100 + b"y")
    cut = f"{digest(b'x' * 100)}:100"
    until(lambda: daemon.digests == {uri(path): cut})
    folder.commit()
    daemon.forget_events()
    with path.open("ab") as log:
        log.write(b"more")
    until(lambda: daemon.touched == [uri(path)], "its position moves along")
    assert (daemon.events, daemon.digests) == ([], {uri(path): cut})
    path.write_bytes(b"z" * 200)
    until(lambda: daemon.digests == {uri(path): f"{digest(b'z' * 100)}:100"})


@pytest.mark.parametrize(("before", "after"), [(100, 200), (200, 100), (100, 150)])
def test_large_file_is_reported_again_if_max_bytes_changes(folder: Folder, before: int, after: int) -> None:
    path = folder.root / "big"
    path.write_bytes(b"x" * 160)
    os.utime(path, (1_000_000, 1_000_000))  # an old time, because a recently written file is checked again
    (folder.root / "small").write_bytes(b"x" * 99)
    os.utime(folder.root / "small", (1_000_000, 1_000_000))
    folder.scanned(max_bytes=before)
    assert folder.restart(max_bytes=before).events == []
    daemon = folder.restart(max_bytes=after)
    assert [event.uri for event in daemon.kinds(FileChanged)] == [uri(path)]


def test_fifos_and_sockets_are_skipped_and_never_opened(folder: Folder) -> None:
    os.mkfifo(folder.root / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(folder.root / "socket"))
        daemon = folder.scanned()
        os.mkfifo(folder.root / "later")
        until(lambda: len(daemon.refused) == 3)
        folder.rescan()
    assert len(daemon.events) == 3
    assert "a named pipe, not a regular file" in daemon.refused[uri(folder.root / "fifo")].refusal.reason
    assert "a socket, not a regular file" in daemon.refused[uri(folder.root / "socket")].refusal.reason
    assert not any(event.refusal.may_recover for event in daemon.refused.values())


@pytest.mark.process
def test_a_file_without_read_permission_fails_and_is_read_once_it_may_be(unprivileged: Folder) -> None:
    path = unprivileged.root / "secret"
    path.write_bytes(b"x")
    path.chmod(0)
    daemon = unprivileged.scanned()
    refused = daemon.refused[uri(path)]
    assert refused.refusal.may_recover
    assert "give hippod's user read access" in refused.refusal.reason
    path.chmod(0o600)
    unprivileged.rescan()
    assert daemon.digests == {uri(path): digest(b"x")}


@pytest.mark.process
def test_a_permission_given_while_the_daemon_was_down_is_noticed(unprivileged: Folder) -> None:
    path = unprivileged.root / "secret"
    path.write_bytes(b"x")
    path.chmod(0)
    daemon = unprivileged.scanned()
    unprivileged.stop()
    fingerprint = daemon.refused[uri(path)].fingerprint
    assert fingerprint is not None
    daemon.positions[uri(path)] = fingerprint
    path.chmod(0o600)
    assert unprivileged.restart().digests == {uri(path): digest(b"x")}


@pytest.mark.process
def test_a_directory_that_cannot_be_listed_fails_and_keeps_what_is_known_below(unprivileged: Folder) -> None:
    directory = unprivileged.root / "dir"
    (directory / "sub").mkdir(parents=True)
    (directory / "sub" / "a").write_bytes(b"a")
    daemon = unprivileged.scanned()
    directory.chmod(0)
    unprivileged.rescan()
    assert "read access" in daemon.refused[uri(directory)].refusal.reason
    assert daemon.refused[uri(directory)].refusal.may_recover
    assert daemon.digests == {uri(directory / "sub/a"): digest(b"a")}
    directory.chmod(0o700)
    (directory / "b").write_bytes(b"b")
    unprivileged.rescan()
    assert daemon.refused == {}
    assert daemon.digests == unprivileged.on_disk()
    (directory / "sub" / "c").write_bytes(b"c")
    unprivileged.settled()


@pytest.mark.process
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
    assert "longer than the system allows" in refused.refusal.reason
    subprocess.run(["rm", "-rf", os.fspath(folder.root / name)], check=True)
    folder.rescan()
    assert daemon.refused == {}
