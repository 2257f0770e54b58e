"""A file with a name outside of the folder is refused; several names inside are several documents."""

import os
from pathlib import Path

import pytest

from consumers.folder.tree.file_status import SwappedError, read_fingerprint
from tests.consumers.folder.support import Folder, digest, until, uri


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
    links = folder.source._reconciler._hard_links
    assert len(links._names) == 3
    for path in folder.root.iterdir():
        path.unlink()
    (folder.root / "last").write_bytes(b"the folder is not empty")
    folder.rescan()
    assert not links._names


def test_linking_the_whole_drive_elsewhere_takes_nothing_out_of_the_memory(folder: Folder, tmp_path: Path) -> None:
    (folder.root / "a").write_bytes(b"kept")
    daemon = folder.scanned()
    os.link(folder.root / "a", tmp_path / "backup")
    os.utime(folder.root / "a")
    folder.rescan()
    daemon = folder.restart()
    assert daemon.digests == {uri(folder.root / "a"): digest(b"kept")}


def test_another_file_that_takes_the_name_after_the_check_is_refused(tmp_path: Path) -> None:
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
