"""The rules for following files: include, exclude, and the defaults."""

from pathlib import Path

import pytest

from consumers.folder import FolderSettings, FolderWatcher
from consumers.types import FileRemoved
from tests.consumers.folder.support import Daemon, Folder, uri


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


def test_files_no_longer_followed_are_removed(folder: Folder) -> None:
    (folder.root / "a.md").write_bytes(b"a")
    (folder.root / "b.txt").write_bytes(b"b")
    folder.scanned()
    daemon = folder.restart(exclude=("*.txt",))
    assert [(type(event), event.uri) for event in daemon.events] == [(FileRemoved, uri(folder.root / "b.txt"))]


def test_error_for_an_invalid_pattern_names_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"include: '!' is not a glob"):
        FolderWatcher(FolderSettings(tmp_path, include=("!",)), {}, Daemon().emit)
