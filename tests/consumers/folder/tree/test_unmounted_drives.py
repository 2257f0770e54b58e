"""If a drive at the root or below it is unmounted, its documents stay."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumers.types import FileChanged, FileRemoved
from tests.consumers.folder.support import Folder, until, uri

pytestmark = pytest.mark.process


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
    """Yields a mount point in the folder; `_mounted` mounts a drive there with its previous content."""
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
    """Uses a bind mount, which keeps its content. Unmounting it sends no event, so a scan must notice it."""
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


def test_permanently_unmounted_drive_below_the_folder_keeps_its_documents(folder: Folder, nas: Path) -> None:
    assert _mount("-t", "tmpfs", "none", nas)
    (nas / "deep").mkdir()
    (nas / "deep" / "a").write_bytes(b"a")
    daemon = folder.scanned()
    assert _unmount(nas)
    until(lambda: "nas" in folder.state().detail)
    (folder.root / "own").write_bytes(b"own")
    folder.rescan()
    assert set(daemon.digests) == {uri(folder.root / "own"), uri(nas / "deep/a")}


def test_pending_file_on_unmounted_drive_is_reported_after_the_mount(folder: Folder, nas: Path) -> None:
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


def test_mount_point_used_as_a_directory_follows_its_own_files(folder: Folder, nas: Path) -> None:
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


def test_clearing_a_mounted_drive_removes_its_documents(folder: Folder, nas: Path) -> None:
    _mounted(nas)
    (nas / "a").write_bytes(b"a")
    daemon = folder.scanned()
    (nas / "a").unlink()
    until(lambda: not daemon.digests)
    assert not folder.state().detail
