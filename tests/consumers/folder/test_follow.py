"""The folder source tells of everything that happens to files, with inotify and by polling."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumers.types import FileChanged, FileMoved, FileRefused, FileRemoved
from tests.consumers.folder.support import Folder, digest, until, uri


@pytest.fixture(params=["inotify", "polling"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Folder]:
    root = tmp_path / "drive"
    root.mkdir()
    folder = Folder(root, request.param == "polling")
    yield folder
    folder.stop()


def test_a_scan_at_start_tells_of_every_file(folder: Folder) -> None:
    (folder.root / "a.txt").write_bytes(b"a")
    (folder.root / "deep" / "er").mkdir(parents=True)
    (folder.root / "deep" / "er" / "b.md").write_bytes(b"b")
    daemon = folder.scanned()
    assert daemon.digests == {
        uri(folder.root / "a.txt"): digest(b"a"),
        uri(folder.root / "deep/er/b.md"): digest(b"b"),
    }
    assert len(daemon.events) == 2
    first = daemon.events[0]
    assert isinstance(first, FileChanged)
    assert first.source == str(folder.root)
    assert folder.state().state == ("polling" if folder.polling else "watching")
    assert folder.state().files == 2
    assert folder.state().last_scan_at is not None


def test_a_new_file_is_told_once(folder: Folder) -> None:
    daemon = folder.scanned()
    (folder.root / "new.txt").write_bytes(b"hello")
    folder.settled()
    folder.rescan()
    assert [type(event) for event in daemon.events] == [FileChanged]


def test_an_edit_in_place_is_told(folder: Folder) -> None:
    path = folder.root / "a.txt"
    path.write_bytes(b"one")
    daemon = folder.scanned()
    daemon.forget_events()
    with path.open("ab") as file:
        file.write(b" two")
    folder.settled()
    assert all(isinstance(event, FileChanged) for event in daemon.events)


def test_an_edit_that_keeps_size_and_mtime_is_told_when_the_writer_closes(tmp_path: Path) -> None:
    folder = Folder(tmp_path, polling=False)
    path = tmp_path / "a.txt"
    path.write_bytes(b"one")
    os.utime(path, ns=(10**18, 10**18))
    folder.scanned()
    path.write_bytes(b"two")
    os.utime(path, ns=(10**18, 10**18))
    folder.settled()
    folder.stop()


@pytest.mark.parametrize("temporary", ["a.txt.new", ".a.txt.swp", "a.txt.tmp"])
def test_a_save_by_rename_is_a_change(folder: Folder, temporary: str) -> None:
    path = folder.root / "a.txt"
    path.write_bytes(b"old")
    daemon = folder.scanned()
    daemon.forget_events()
    (folder.root / temporary).write_bytes(b"new content")
    (folder.root / temporary).rename(path)
    folder.settled()
    folder.rescan()
    assert folder.on_disk() == daemon.digests
    assert uri(path) not in {event.uri for event in daemon.kinds(FileRemoved)}


def test_a_save_as_vim_does_it_never_removes_the_file(folder: Folder) -> None:
    path = folder.root / "a.txt"
    path.write_bytes(b"old")
    daemon = folder.scanned()
    daemon.forget_events()
    path.rename(folder.root / "a.txt~")
    path.write_bytes(b"new")
    (folder.root / "a.txt~").unlink()
    until(lambda: daemon.digests.get(uri(path)) == digest(b"new"))
    folder.rescan()
    assert not daemon.kinds(FileRemoved, FileMoved)
    assert daemon.digests == {uri(path): digest(b"new")}


def test_a_save_as_an_office_program_does_it_is_a_change(folder: Folder) -> None:
    path = folder.root / "a.docx"
    path.write_bytes(b"old")
    daemon = folder.scanned()
    daemon.forget_events()
    (folder.root / "~$a.docx").write_bytes(b"owner")
    (folder.root / "0A1B2C.tmp").write_bytes(b"new")
    path.rename(folder.root / "3D4E5F.tmp")
    (folder.root / "0A1B2C.tmp").rename(path)
    (folder.root / "3D4E5F.tmp").unlink()
    (folder.root / "~$a.docx").unlink()
    until(lambda: daemon.digests.get(uri(path)) == digest(b"new"))
    folder.rescan()
    assert daemon.digests == {uri(path): digest(b"new")}
    assert not daemon.kinds(FileRemoved)


def test_a_rename_is_a_move(folder: Folder) -> None:
    (folder.root / "a.txt").write_bytes(b"content")
    daemon = folder.scanned()
    daemon.forget_events()
    (folder.root / "a.txt").rename(folder.root / "b.txt")
    folder.settled()
    assert [type(event) for event in daemon.events] == [FileMoved]


def test_a_moved_directory_moves_each_file(folder: Folder) -> None:
    (folder.root / "old" / "sub").mkdir(parents=True)
    for name in ("a", "b", "sub/c"):
        (folder.root / "old" / name).write_bytes(name.encode())
    daemon = folder.scanned()
    daemon.forget_events()
    (folder.root / "old").rename(folder.root / "new")
    folder.settled()
    assert [type(event) for event in daemon.events] == [FileMoved] * 3
    (folder.root / "new" / "sub" / "later").write_bytes(b"in a moved directory")
    folder.settled()


def test_a_move_while_the_daemon_was_down_is_a_move(folder: Folder) -> None:
    (folder.root / "old").mkdir()
    for name in ("a", "b"):
        (folder.root / "old" / name).write_bytes(name.encode())
    folder.scanned()
    folder.stop()
    (folder.root / "old").rename(folder.root / "new")
    daemon = folder.restart()
    assert [type(event) for event in daemon.events] == [FileMoved] * 2
    assert daemon.digests == folder.on_disk()


def test_a_file_restored_under_another_name_and_inode_is_a_move(folder: Folder) -> None:
    (folder.root / "a").write_bytes(b"content")
    folder.scanned()
    folder.stop()
    shutil.copy(folder.root / "a", folder.root / "b")
    (folder.root / "a").unlink()
    daemon = folder.restart()
    assert [type(event) for event in daemon.events] == [FileMoved]


def test_out_of_the_tree_is_a_removal_and_back_in_an_add(folder: Folder) -> None:
    outside = folder.root.parent / "outside"
    (folder.root / "dir").mkdir()
    (folder.root / "dir" / "a.txt").write_bytes(b"content")
    (folder.root / "stays").write_bytes(b"stays")
    daemon = folder.scanned()
    (folder.root / "dir").rename(outside)
    until(lambda: uri(folder.root / "dir/a.txt") not in daemon.digests)
    (outside / "a.txt").write_bytes(b"changed outside")
    (outside / "b.txt").write_bytes(b"new outside")
    outside.rename(folder.root / "dir")
    folder.settled()
    assert not daemon.kinds(FileMoved)


def test_deletions_are_told(folder: Folder) -> None:
    (folder.root / "dir" / "sub").mkdir(parents=True)
    for name in ("dir/a", "dir/sub/b", "c"):
        (folder.root / name).write_bytes(name.encode())
    daemon = folder.scanned()
    (folder.root / "c").unlink()
    folder.settled()
    shutil.rmtree(folder.root / "dir")
    folder.settled()
    assert len(daemon.kinds(FileRemoved)) == 3


def test_a_directory_that_is_deleted_and_restored_is_followed_again(folder: Folder) -> None:
    (folder.root / "dir").mkdir()
    (folder.root / "dir" / "a").write_bytes(b"a")
    folder.scanned()
    for turn in range(3):
        shutil.rmtree(folder.root / "dir")
        folder.settled()
        (folder.root / "dir").mkdir()
        (folder.root / "dir" / "a").write_bytes(b"a%d" % turn)
        folder.settled()
        (folder.root / "dir" / "b").write_bytes(b"b%d" % turn)
        folder.settled()


def test_files_in_directories_that_are_made_at_once_are_found(folder: Folder) -> None:
    folder.scanned()
    for number in range(20):
        (folder.root / f"{number}" / "x" / "y").mkdir(parents=True)
        (folder.root / f"{number}" / "f").write_bytes(b"%d f" % number)
        (folder.root / f"{number}" / "x" / "y" / "g").write_bytes(b"%d g" % number)
    folder.settled()
    assert len(folder.daemon.digests) == 40


def test_a_file_becomes_a_directory_and_a_file_again(folder: Folder) -> None:
    folder.scanned()
    path = folder.root / "x"
    path.write_bytes(b"file")
    folder.settled()
    path.unlink()
    path.mkdir()
    (path / "y").write_bytes(b"below")
    folder.settled()
    shutil.rmtree(path)
    path.write_bytes(b"file again")
    folder.settled()


def test_a_touched_file_is_not_told_again(folder: Folder) -> None:
    path = folder.root / "a"
    path.write_bytes(b"content")
    daemon = folder.scanned()
    folder.commit()
    daemon.forget_events()
    os.utime(path, ns=(10**18, 10**18))
    until(lambda: daemon.touched)
    folder.rescan()
    assert daemon.events == []
    assert daemon.positions[uri(path)].mtime_ns == 10**18


def test_a_file_that_is_touched_before_it_is_committed_is_told_again(folder: Folder) -> None:
    """Its position alone, committed with another document, would have it count as read after a restart."""
    path = folder.root / "a"
    path.write_bytes(b"content")
    daemon = folder.scanned()
    os.utime(path, ns=(10**18, 10**18))
    until(lambda: daemon.positions[uri(path)].mtime_ns == 10**18)
    folder.rescan()
    assert daemon.touched == []
    assert [event.fingerprint.mtime_ns for event in daemon.kinds(FileChanged)][-1] == 10**18


def test_a_file_whose_earlier_content_was_committed_is_told_again_when_touched(folder: Folder) -> None:
    path = folder.root / "a"
    path.write_bytes(b"content")
    daemon = folder.scanned()
    folder.commit()
    path.write_bytes(b"another")
    until(lambda: daemon.digests == folder.on_disk())
    os.utime(path, ns=(10**18, 10**18))
    until(lambda: daemon.positions[uri(path)].mtime_ns == 10**18)
    assert daemon.touched == []


def test_what_changed_while_the_daemon_was_down_is_found_and_nothing_else(folder: Folder) -> None:
    for name in ("same", "edited", "same-size", "touched", "gone", "replaced"):
        (folder.root / name).write_bytes(name.encode())
    folder.scanned()
    folder.stop()
    (folder.root / "edited").write_bytes(b"another text")
    (folder.root / "same-size").write_bytes(b"SAME-SIZE")
    os.utime(folder.root / "touched", ns=(10**18, 10**18))
    (folder.root / "gone").unlink()
    (folder.root / "copy").write_bytes(b"replaced")
    (folder.root / "copy").rename(folder.root / "replaced")
    (folder.root / "new").write_bytes(b"new")
    daemon = folder.restart()
    assert {event.uri.rpartition("/")[2] for event in daemon.kinds(FileChanged)} == {"edited", "same-size", "new"}
    assert {event.uri.rpartition("/")[2] for event in daemon.kinds(FileRemoved)} == {"gone"}
    assert {name.rpartition("/")[2] for name in daemon.touched} == {"touched", "replaced"}
    assert daemon.digests == folder.on_disk()
    assert folder.restart().events == []


def test_a_hard_link_is_another_document_and_not_a_move(folder: Folder) -> None:
    (folder.root / "a").write_bytes(b"content")
    daemon = folder.scanned()
    os.link(folder.root / "a", folder.root / "b")
    folder.settled()
    assert len(daemon.digests) == 2
    assert [type(event) for event in daemon.events] == [FileChanged] * 2
    (folder.root / "a").unlink()
    folder.settled()


def test_a_file_that_is_gone_before_it_settled_is_never_told(folder: Folder) -> None:
    daemon = folder.scanned(settle_ms=300)
    path = folder.root / "short-lived"
    with path.open("wb") as file:
        file.write(b"x")
        file.flush()
        path.unlink()
    (folder.root / "marker").write_bytes(b"y")
    folder.settled()
    folder.rescan()
    assert {event.uri for event in daemon.events} == {uri(folder.root / "marker")}


def test_a_file_that_is_being_written_is_told_when_it_is_complete(folder: Folder) -> None:
    daemon = folder.scanned(settle_ms=1500)
    path = folder.root / "long"
    with path.open("wb") as file:
        for number in range(20):
            file.write(b"part %d " % number)
            file.flush()
            folder.source.rescan()
        assert daemon.events == []
    folder.settled()
    assert len(daemon.events) == 1


def test_a_file_that_stays_open_is_told_once_it_is_quiet(folder: Folder) -> None:
    folder.scanned()
    with (folder.root / "log").open("wb") as file:
        file.write(b"first line\n")
        file.flush()
        folder.settled()
        file.write(b"second line\n")
        file.flush()
        folder.settled()


def test_names_of_any_bytes_are_followed(folder: Folder) -> None:
    folder.scanned()
    root = os.fsencode(folder.root)
    names = [
        b"new\nline",
        b"\xff\xfe.txt",
        b"# ?%20&.md",
        "Zürich €".encode(),
        b"dir\n\xe9/with #.txt",
        b"back\\slash",
        b"-",
        b"\n",
    ]
    for name in names:
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(name)
    folder.settled()
    assert len(folder.daemon.digests) == len(names)
    os.rename(os.path.join(root, b"dir\n\xe9"), os.path.join(root, b"\xe8"))
    folder.settled()
    for name in names[:3]:
        os.unlink(os.path.join(root, name))
    folder.settled()


def test_many_changes_of_one_file_become_few_events(folder: Folder) -> None:
    daemon = folder.scanned(settle_ms=100)
    with (folder.root / "busy").open("wb") as file:
        for number in range(2000):
            os.pwrite(file.fileno(), b"%d" % number, 0)
    folder.settled()
    folder.rescan()
    assert len(daemon.events) < 50


def test_thousands_of_files_that_change_at_once_are_told(folder: Folder) -> None:
    folder.scanned()
    for directory in range(20):
        (folder.root / f"{directory}").mkdir()
        for number in range(100):
            (folder.root / f"{directory}" / f"{number}").write_bytes(b"%d %d" % (directory, number))
    folder.rescan()
    assert folder.daemon.digests == folder.on_disk()
    for directory in range(20):
        for number in range(100):
            path = folder.root / f"{directory}" / f"{number}"
            path.with_suffix(".tmp").write_bytes(b"second %d %d" % (directory, number))
            path.with_suffix(".tmp").rename(path)
    folder.rescan()
    assert folder.daemon.digests == folder.on_disk()
    assert not folder.daemon.kinds(FileRemoved, FileRefused)


def test_a_recheck_tells_of_an_unchanged_file_again(folder: Folder) -> None:
    path = folder.root / "a"
    path.write_bytes(b"content")
    daemon = folder.scanned()
    daemon.forget_events()
    folder.source.recheck(uri(path))
    until(lambda: [type(event) for event in daemon.events] == [FileChanged])


def test_a_file_that_the_daemon_dropped_is_told_again_by_the_next_scan(folder: Folder) -> None:
    path = folder.root / "a"
    path.write_bytes(b"content")
    daemon = folder.scanned()
    folder.source.committed(uri(path), daemon.positions[uri(path)])
    daemon.forget_events()
    folder.rescan()
    assert daemon.events == []
    folder.source.committed(uri(path), None)
    folder.rescan()
    assert [type(event) for event in daemon.events] == [FileChanged]


def test_a_file_that_the_daemon_could_not_read_is_told_again(folder: Folder) -> None:
    path = folder.root / "a"
    path.write_bytes(b"content")
    os.utime(path, ns=(10**18, 10**18))
    daemon = folder.scanned()
    daemon.forget_events()
    folder.source.committed(uri(path), None)
    until(lambda: [event.uri for event in daemon.kinds(FileChanged)] == [uri(path)])
    folder.commit()
    folder.rescan()
    assert len(daemon.events) == 1


def test_a_file_that_was_not_read_is_no_move_of_what_is_known(folder: Folder) -> None:
    """What the memory has under its name is earlier content, which a move would take for the new one's."""
    path, new = folder.root / "a", folder.root / "b"
    path.write_bytes(b"content")
    daemon = folder.scanned()
    daemon.forget_events()
    path.rename(folder.root.parent / "away")
    folder.source.committed(uri(path), None)
    (folder.root.parent / "away").rename(new)
    until(lambda: daemon.digests == folder.on_disk())
    assert {type(event) for event in daemon.events} == {FileChanged, FileRemoved}
