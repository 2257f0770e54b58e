"""A file with a hard link outside the followed folders is refused. Several names in one folder are several documents; names in
two folders count in one of them."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from consumers.folder import HardLinks
from consumers.folder.tree.file_status import SwappedError, read_fingerprint
from consumers.types import FileRefused
from tests.consumers.folder.support import Folder, digest, until, uri


def test_a_hard_link_to_a_file_outside_is_refused_like_a_symbolic_link(folder: Folder, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_bytes(b"not for this folder")
    (folder.root / "own").write_bytes(b"own")
    os.link(outside, folder.root / "linked")
    daemon = folder.scanned()
    assert set(daemon.digests) == {uri(folder.root / "own")}
    assert "a hard link" in daemon.refused[uri(folder.root / "linked")].refusal.reason
    # A refused link replaces a readable file: the document of the earlier content is removed.
    os.link(outside, folder.root / "swap.tmp")
    (folder.root / "swap.tmp").rename(folder.root / "own")
    until(lambda: uri(folder.root / "own") in daemon.refused, "the swapped link is refused")
    assert digest(b"not for this folder") not in daemon.digests.values()
    outside.unlink()
    (folder.root / "linked").unlink()
    folder.rescan()
    assert daemon.digests == {uri(folder.root / "own"): digest(b"not for this folder")}


def test_hard_links_within_a_folder_are_separate_documents(folder: Folder) -> None:
    (folder.root / "a").write_bytes(b"one file")
    os.link(folder.root / "a", folder.root / "b")
    daemon = folder.scanned()
    assert set(daemon.digests) == {uri(folder.root / "a"), uri(folder.root / "b")}
    assert daemon.refused == {}


def test_hard_link_records_are_dropped_with_their_files(folder: Folder) -> None:
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


def test_hard_links_made_elsewhere_later_remove_no_document(folder: Folder, tmp_path: Path) -> None:
    (folder.root / "a").write_bytes(b"kept")
    daemon = folder.scanned()
    os.link(folder.root / "a", tmp_path / "backup")
    os.utime(folder.root / "a")
    folder.rescan()
    daemon = folder.restart()
    assert daemon.digests == {uri(folder.root / "a"): digest(b"kept")}


class Pair:
    """Two folders on one disk with a shared `HardLinks`."""

    def __init__(self, top: Path, polling: bool) -> None:
        self.links = HardLinks()
        self.folders = []
        for name in ("a", "b"):
            (top / name).mkdir()
            folder = Folder(top / name, polling)
            (folder.root / "own").write_bytes(name.encode())
            self.folders.append(folder)

    def start(self) -> None:
        for folder in self.folders:
            folder.start(hard_links=self.links)

    def stop(self) -> None:
        for folder in self.folders:
            folder.stop()
        self.links = HardLinks()

    def rescan(self) -> None:
        """Rescans both folders until neither emits a new event: each tells the other of the names that it found."""
        before = None
        while before != (now := [list(folder.daemon.events) for folder in self.folders]):
            before = now
            for folder in self.folders:
                folder.rescan()

    def read(self) -> list[tuple[str, str]]:
        return sorted(
            (Path(unquote(urlsplit(name).path)).relative_to(folder.root.parent).as_posix(), str(found))
            for folder in self.folders
            for name, found in folder.daemon.digests.items()
        )

    def expected(self) -> list[tuple[str, str]]:
        """Returns the result of a fresh build: for a file with names in both folders, the names in the first folder count."""
        out = []
        paths = sorted(path for folder in self.folders for path in folder.root.iterdir())
        for path in paths:
            names = [each for each in paths if each.samefile(path)]
            if len(names) == path.stat().st_nlink and names[0].parent == path.parent:
                out.append((f"{path.parent.name}/{path.name}", digest(path.read_bytes())))
        return out


@pytest.fixture(params=[False, True], ids=["inotify", "polling"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path, request.param)
    yield pair
    pair.stop()


def test_a_file_with_names_in_two_followed_folders_is_read_once(pair: Pair) -> None:
    first, second = (folder.root / "shared" for folder in pair.folders)
    second.write_bytes(b"one file")
    os.link(second, first)
    pair.start()
    pair.rescan()
    assert pair.read() == pair.expected()
    assert ("a/shared", digest(b"one file")) in pair.read()
    one, other = (folder.daemon for folder in pair.folders)
    assert one.refused == {} and one.kinds(FileRefused) == [], "a first scan waits for that of the other folder"
    assert other.refused[uri(second)].refusal.reason == f"a hard link to {str(first)!r}, which is followed already"
    first.unlink()
    until(lambda: ("b/shared", digest(b"one file")) in pair.read(), "the name that is left is read, without a scan")
    os.link(second, first)
    until(lambda: pair.read() == pair.expected(), "the first name is read again, and the second one is not")


def test_hard_link_to_a_file_outside_both_folders_is_refused(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    for folder in pair.folders:
        os.link(tmp_path / "secret", folder.root / "linked")
    pair.start()
    pair.rescan()
    assert digest(b"secret") not in dict(pair.read()).values()
    assert all(
        "a hard link: not all of its 3 names" in folder.daemon.refused[uri(folder.root / "linked")].refusal.reason
        for folder in pair.folders
    )


SIDE = st.integers(0, 1)
NAME = st.sampled_from(("x", "y"))
STEP = st.one_of(
    st.tuples(st.just("write"), SIDE, NAME, st.binary(min_size=1, max_size=2)),
    st.tuples(st.just("link"), SIDE, NAME, SIDE, NAME),
    st.tuples(st.just("move"), SIDE, NAME, SIDE, NAME),
    st.tuples(st.just("delete"), SIDE, NAME),
    st.tuples(st.just("restart")),
    st.tuples(st.just("settle")),
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, phases=(Phase.generate,), suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(STEP, min_size=2, max_size=10))
def test_exactly_one_of_two_folders_reads_a_shared_file_after_any_changes(steps: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as top:
        pair = Pair(Path(top).resolve(), polling=False)
        pair.start()
        try:
            for step in steps:
                with contextlib.suppress(OSError):
                    apply(pair, step)
            pair.rescan()
            assert pair.read() == pair.expected()
        finally:
            pair.stop()


def apply(pair: Pair, step: tuple[object, ...]) -> None:
    match step:
        case ("write", int(side), str(name), bytes(content)):
            (pair.folders[side].root / name).write_bytes(content)
        case ("link", int(side), str(name), int(other), str(new)):
            os.link(pair.folders[side].root / name, pair.folders[other].root / new)
        case ("move", int(side), str(name), int(other), str(new)):
            (pair.folders[side].root / name).rename(pair.folders[other].root / new)
        case ("delete", int(side), str(name)):
            (pair.folders[side].root / name).unlink()
        case ("settle",):
            pair.rescan()
        case ("restart",):
            pair.stop()
            pair.start()


def test_file_replaced_after_the_hard_link_check_is_refused(tmp_path: Path) -> None:
    """A hard link to an outside file appears between the check of the names and the reading of the digest."""
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
