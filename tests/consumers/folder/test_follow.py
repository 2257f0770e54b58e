"""The folder source reports every change to files, with inotify and by polling."""

import os
from pathlib import Path

import pytest

from consumers.folder.reconciler import SCAN_MANY_FILES
from consumers.types import FileChanged, FileMoved, FileRefused, FileRemoved
from tests.consumers.folder.support import Folder, digest, until, uri


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


def test_files_are_marked_as_scanned_only_if_a_scan_finds_many(folder: Folder) -> None:
    for number in range(SCAN_MANY_FILES + 1):
        (folder.root / f"{number}.txt").write_bytes(b"%d" % number)
    daemon = folder.scanned()
    assert len(daemon.events) == SCAN_MANY_FILES + 1
    assert all(isinstance(event, FileChanged) and event.scanned for event in daemon.events)
    daemon.forget_events()
    (folder.root / "new.txt").write_bytes(b"hello")
    folder.settled()
    assert [isinstance(event, FileChanged) and event.scanned for event in daemon.events] == [False]


def test_a_new_file_is_reported_once(folder: Folder) -> None:
    daemon = folder.scanned()
    (folder.root / "new.txt").write_bytes(b"hello")
    folder.settled()
    folder.rescan()
    assert [type(event) for event in daemon.events] == [FileChanged]


def test_an_edit_in_place_is_reported(folder: Folder) -> None:
    path = folder.root / "a.txt"
    path.write_bytes(b"one")
    daemon = folder.scanned()
    daemon.forget_events()
    with path.open("ab") as file:
        file.write(b" two")
    folder.settled()
    assert all(isinstance(event, FileChanged) for event in daemon.events)


def test_an_edit_that_keeps_size_and_mtime_is_reported_when_the_writer_closes(tmp_path: Path) -> None:
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


def test_save_by_vim_reports_no_removal(folder: Folder) -> None:
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


def test_save_by_an_office_program_is_reported_as_a_change(folder: Folder) -> None:
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


def test_a_file_that_is_gone_before_it_settled_is_never_reported(folder: Folder) -> None:
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


def test_a_file_that_is_being_written_is_reported_when_it_is_complete(folder: Folder) -> None:
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


def test_a_file_that_stays_open_is_reported_once_it_is_quiet(folder: Folder) -> None:
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


@pytest.mark.slow
def test_thousands_of_files_that_change_at_once_are_reported(folder: Folder) -> None:
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
