"""Folders that a source follows, by inotify and by polling; stopped when the test ends."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.consumers.folder.support import Folder

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
    """Yields a folder followed by an unprivileged user, because root can read every file."""
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
