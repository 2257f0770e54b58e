"""If a root is missing or suspiciously empty, its documents stay until it is back."""

from consumers.types import FileChanged, FileRemoved
from tests.consumers.folder.support import Folder, rescanned, until


def test_missing_folder_is_followed_when_it_appears(folder: Folder) -> None:
    folder.root.rmdir()
    daemon = folder.start()
    until(lambda: folder.state().state == "missing")
    assert "not there" in folder.state().detail
    assert not rescanned(folder.source)
    folder.root.mkdir()
    (folder.root / "a").write_bytes(b"a")
    folder.settled()
    assert [state.state for state in daemon.states][-1] in ("watching", "polling")


def test_vanished_folder_keeps_its_documents_and_is_followed_on_return(folder: Folder) -> None:
    for name in ("a", "b", "c"):
        (folder.root / name).write_bytes(name.encode())
    daemon = folder.scanned()
    daemon.forget_events()
    folder.root.rename(folder.root.parent / "unmounted")
    until(lambda: folder.state().state == "missing")
    assert folder.state().files == 3
    (folder.root.parent / "unmounted" / "a").unlink()
    (folder.root.parent / "unmounted" / "b").write_bytes(b"changed meanwhile")
    (folder.root.parent / "unmounted").rename(folder.root)
    folder.settled()
    assert {type(event) for event in daemon.events} == {FileChanged, FileRemoved}
    assert len(daemon.events) == 2
    (folder.root / "d").write_bytes(b"d")
    folder.settled()


def test_empty_folder_after_a_restart_needs_confirmation(folder: Folder) -> None:
    (folder.root / "a").write_bytes(b"a")
    folder.scanned()
    folder.stop()
    (folder.root / "a").unlink()
    daemon = folder.start()
    until(lambda: folder.state().state == "missing")
    assert "put any file into the folder" in folder.state().detail
    assert len(daemon.digests) == 1
    (folder.root / ".anything").touch()
    folder.settled()
    assert daemon.digests == {}


def test_empty_directory_in_place_of_the_folder_removes_no_document(folder: Folder) -> None:
    (folder.root / "a").write_bytes(b"a")
    daemon = folder.scanned()
    folder.root.rename(folder.root.parent / "unmounted")
    folder.root.mkdir()
    until(lambda: folder.state().state == "missing")
    assert len(daemon.digests) == 1
    folder.root.rmdir()
    (folder.root.parent / "unmounted").rename(folder.root)
    until(lambda: folder.state().state in ("watching", "polling"))
    folder.rescan()
    assert daemon.digests == folder.on_disk() != {}


def test_clearing_a_followed_folder_removes_its_documents(folder: Folder) -> None:
    for name in ("a", "b"):
        (folder.root / name).write_bytes(name.encode())
    daemon = folder.scanned()
    for name in ("a", "b"):
        (folder.root / name).unlink()
    until(lambda: not daemon.digests)
    (folder.root / "c").write_bytes(b"c")
    folder.settled()
