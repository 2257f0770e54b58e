"""Renames, moves and deletions of files and directories become moves and removals of documents."""

import os
import shutil
from concurrent.futures import Future

from consumers.types import FileChanged, FileMoved, FileRemoved
from tests.consumers.folder.support import Folder, until, uri


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


def test_move_out_of_the_folder_is_a_removal_and_move_back_an_addition(folder: Folder) -> None:
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


def test_deletions_are_reported(folder: Folder) -> None:
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


def test_a_hard_link_is_another_document_and_not_a_move(folder: Folder) -> None:
    (folder.root / "a").write_bytes(b"content")
    daemon = folder.scanned()
    os.link(folder.root / "a", folder.root / "b")
    folder.settled()
    assert len(daemon.digests) == 2
    assert [type(event) for event in daemon.events] == [FileChanged] * 2
    (folder.root / "a").unlink()
    folder.settled()


def test_file_that_was_not_parsed_is_not_reported_as_moved(folder: Folder) -> None:
    """The memory's document of that name has earlier content, which a move would mistake for the new content."""
    path, new = folder.root / "a", folder.root / "b"
    path.write_bytes(b"content")
    daemon = folder.scanned()
    daemon.forget_events()
    path.rename(folder.root.parent / "away")
    folder.source.committed(uri(path), None)
    (folder.root.parent / "away").rename(new)
    until(lambda: daemon.digests == folder.on_disk())
    assert {type(event) for event in daemon.events} == {FileChanged, FileRemoved}


def test_rescan_ends_if_a_deleted_file_is_replaced_by_a_refused_one(folder: Folder) -> None:
    path = folder.root / "a.txt"
    path.write_bytes(b"content")
    (folder.root / "stays").write_bytes(b"stays")
    daemon = folder.scanned()
    path.unlink()
    answer: Future[bool] = Future()
    folder.source.rescan(answer.set_result)
    until(lambda: folder.source.state.pending)
    path.symlink_to("stays")
    assert answer.result(timeout=10)
    until(lambda: uri(path) in daemon.refused)
