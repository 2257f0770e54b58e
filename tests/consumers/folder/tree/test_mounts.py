"""An empty mount point is distinguished from a cleared directory by its device."""

import os
from pathlib import Path

import pytest

from consumers.folder.tree.mounts import MountedDrives


@pytest.fixture
def drives(tmp_path: Path) -> MountedDrives:
    """A drive was known at `nas` and is unmounted: the directory is now on its parent's device."""
    (tmp_path / "nas").mkdir()
    here = tmp_path.stat().st_dev
    drives = MountedDrives()
    drives.record(bytes(tmp_path / "nas"), here + 1, here)
    return drives


def test_empty_mount_point_counts_as_an_unmounted_drive(tmp_path: Path, drives: MountedDrives) -> None:
    nas = bytes(tmp_path / "nas")
    paths = [nas, nas + b"/deep/a", nas + b"-local/a", bytes(tmp_path / "a")]
    assert drives.on_mounted_drives(paths) == paths[2:]
    assert drives.unmounted == {nas}
    assert drives.take_returned() == []
    (tmp_path / "nas" / "any").touch()
    assert drives.take_returned() == [nas]
    assert not drives.unmounted
    assert drives.on_mounted_drives(paths) == paths


def test_removed_mount_point_is_not_an_absent_drive(tmp_path: Path, drives: MountedDrives) -> None:
    (tmp_path / "nas").rmdir()
    assert not drives.is_on_unmounted_drive(bytes(tmp_path / "nas" / "a"))


def test_empty_mount_point_is_not_recorded_as_an_ordinary_directory(tmp_path: Path, drives: MountedDrives) -> None:
    nas, here = bytes(tmp_path / "nas"), tmp_path.stat().st_dev
    drives.record(nas, here, here)
    assert drives.is_on_unmounted_drive(nas)
    (tmp_path / "nas" / "any").touch()
    drives.record(nas, here)
    os.unlink(tmp_path / "nas" / "any")
    assert not drives.is_on_unmounted_drive(nas)


def test_a_directory_of_the_folders_own_device_is_no_drive(tmp_path: Path) -> None:
    drives = MountedDrives()
    drives.record(bytes(tmp_path), tmp_path.stat().st_dev)
    assert not drives.is_on_unmounted_drive(bytes(tmp_path / "a"))
