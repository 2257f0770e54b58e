"""A file in a folder is opened without following links, even if one is swapped in meanwhile."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from consumers.openat import FileAccess, open_file
from consumers.parsing import parse_file
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument

SECRET = b"for nobody in the folder"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    (folder / "deep").mkdir(parents=True)
    for place in (folder, folder / "deep"):
        (place / "a.txt").write_bytes(SECRET)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "drive"
    (folder / "d" / "deep").mkdir(parents=True)
    (folder / "d" / "deep" / "a.txt").write_bytes(b"inside")
    return folder


def read(path: Path, root: Path | None, follow: bool = False) -> bytes:
    handle = open_file(os.fsencode(path), root=None if root is None else os.fsencode(root), follow=follow)
    try:
        return os.read(handle, 100)
    finally:
        os.close(handle)


def swap_folder(root: Path, outside: Path) -> None:
    (root / "d").rename(root / "gone")
    (root / "d").symlink_to(outside)


def swap_inner_folder(root: Path, outside: Path) -> None:
    (root / "d" / "deep").rename(root / "gone")
    (root / "d" / "deep").symlink_to(outside / "deep")


def swap_file(root: Path, outside: Path) -> None:
    (root / "d" / "deep" / "a.txt").unlink()
    (root / "d" / "deep" / "a.txt").symlink_to(outside / "a.txt")


@pytest.mark.parametrize("swap", [swap_folder, swap_inner_folder, swap_file])
def test_link_that_replaces_a_folder_of_the_path_is_not_followed(
    root: Path, outside: Path, swap: Callable[[Path, Path], None]
) -> None:
    path = root / "d" / "deep" / "a.txt"
    assert read(path, root) == b"inside"
    swap(root, outside)
    with pytest.raises(OSError, match=r"Not a directory|symbolic links") as refused:
        read(path, root)
    assert refused.value.errno in (errno.ENOTDIR, errno.ELOOP)
    assert read(path, root, follow=True) == SECRET


@pytest.mark.parametrize("name", ["../outside/a.txt", "d/../../outside/a.txt", "d//deep/a.txt", "d/./deep/a.txt"])
def test_open_file_refuses_names_that_lead_outside_the_root(root: Path, outside: Path, name: str) -> None:
    with pytest.raises(OSError, match="followed folder"):
        handle = open_file(os.fsencode(root) + b"/" + name.encode(), root=os.fsencode(root), follow=False)
        os.close(handle)


def test_the_root_itself_may_be_reached_by_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert read(tmp_path / "link" / "d" / "deep" / "a.txt", tmp_path / "link") == b"inside"


def test_hard_link_that_replaces_a_checked_file_is_refused(root: Path, outside: Path) -> None:
    path = root / "d" / "deep" / "a.txt"
    inode = path.stat().st_ino
    os.link(outside / "a.txt", root / "new")
    (root / "new").rename(path)

    def parsed(checked_inode: int | None) -> ParsedDocument:
        access = FileAccess(root=os.fsencode(root), checked_inode=checked_inode)
        [first, *_] = parse_file(os.fsencode(path), path.as_uri(), SplitSettings(), access=access)
        assert isinstance(first, ParsedDocument)
        return first

    refused = parsed(inode)
    assert "hard link" in (refused.error or "")
    assert not refused.skipped
    assert refused.passages == ()
    # A reconciler that has found all names allows the file.
    assert parsed(path.stat().st_ino).passages[0].text == SECRET.decode()
