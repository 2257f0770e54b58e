"""Committed and unreadable files decide which files are reported again."""

import os

from consumers.types import FileChanged, FileRemoved
from tests.consumers.folder.support import Folder, until, uri


def test_a_touched_file_is_not_reported_again(folder: Folder) -> None:
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


def test_a_file_that_is_touched_before_it_is_committed_is_reported_again(folder: Folder) -> None:
    """A position alone, committed with another document, would make the file count as parsed after a restart."""
    path = folder.root / "a"
    path.write_bytes(b"content")
    daemon = folder.scanned()
    os.utime(path, ns=(10**18, 10**18))
    until(lambda: daemon.positions[uri(path)].mtime_ns == 10**18)
    folder.rescan()
    assert daemon.touched == []
    assert [event.fingerprint.mtime_ns for event in daemon.kinds(FileChanged)][-1] == 10**18


def test_a_file_whose_earlier_content_was_committed_is_reported_again_when_touched(folder: Folder) -> None:
    path = folder.root / "a"
    path.write_bytes(b"content")
    daemon = folder.scanned()
    folder.commit()
    path.write_bytes(b"another")
    until(lambda: daemon.digests == folder.on_disk())
    os.utime(path, ns=(10**18, 10**18))
    until(lambda: daemon.positions[uri(path)].mtime_ns == 10**18)
    assert daemon.touched == []


def test_only_files_changed_while_the_daemon_was_down_are_reported(folder: Folder) -> None:
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


def test_recheck_reports_an_unchanged_file_again(folder: Folder) -> None:
    path = folder.root / "a"
    path.write_bytes(b"content")
    daemon = folder.scanned()
    daemon.forget_events()
    folder.source.recheck(uri(path))
    until(lambda: [type(event) for event in daemon.events] == [FileChanged])


def test_a_file_that_the_daemon_dropped_is_reported_again_by_the_next_scan(folder: Folder) -> None:
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


def test_a_file_that_the_daemon_could_not_read_is_reported_again(folder: Folder) -> None:
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
